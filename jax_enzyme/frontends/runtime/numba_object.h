// What stands in front of Numba's counted memory.
#pragma once

typedef long long i64;
typedef unsigned long long u64;

typedef void (*Destructor)(void *data, u64 size, void *context);

// The fields that Numba's own code reads stand where it expects them. Elements are in memory of their own, apart from
// the counter.
struct Object {
  u64 count;
  Destructor destroy;
  void *context;
  void *data;
  u64 size;
  void *allocator;
};

// malloc's memory is aligned to 16 bytes, which is more than any number needs.
inline Object *made(u64 size, Destructor destroy) {
  Object *const object = static_cast<Object *>(__builtin_malloc(sizeof(Object)));
  object->count = 1;
  object->destroy = destroy;
  object->context = nullptr;
  object->size = size;
  object->allocator = nullptr;
  object->data = __builtin_malloc(size ? size : 1);
  return object;
}

// Ends what an object owns. A program in which nothing has a destructor is linked with one that does nothing.
extern "C" void je_numba_end(Object *object);
