// Numba's counted memory, under the names by which its code calls it. A kernel's objects belong to one thread.
// provides: NRT_(incref|decref|Allocate|Free|Reallocate) NRT_MemInfo_(alloc|alloc_safe)(_aligned)? NRT_MemInfo_call_dtor
// provides: NRT_MemInfo_(new_varsize|varsize_alloc|varsize_realloc|varsize_free)
#include "numba_object.h"

extern "C" {

void *NRT_Allocate(u64 size) { return __builtin_malloc(size ? size : 1); }
void *NRT_Reallocate(void *p, u64 size) { return __builtin_realloc(p, size ? size : 1); }
void NRT_Free(void *p) { __builtin_free(p); }

Object *NRT_MemInfo_alloc(u64 size) { return made(size, nullptr); }
Object *NRT_MemInfo_alloc_safe(u64 size) { return made(size, nullptr); }
Object *NRT_MemInfo_alloc_aligned(u64 size, unsigned) { return made(size, nullptr); }
Object *NRT_MemInfo_alloc_safe_aligned(u64 size, unsigned) { return made(size, nullptr); }
Object *NRT_MemInfo_new_varsize(u64 size) { return made(size, nullptr); }

void *NRT_MemInfo_varsize_alloc(Object *object, u64 size) {
  object->size = size;
  return object->data = NRT_Allocate(size);
}

void *NRT_MemInfo_varsize_realloc(Object *object, u64 size) {
  void *const moved = NRT_Allocate(size);
  __builtin_memcpy(moved, object->data, object->size < size ? object->size : size);
  __builtin_free(object->data);
  object->size = size;
  return object->data = moved;
}

void NRT_MemInfo_varsize_free(Object *object, void *data) {
  __builtin_free(data);
  if (object->data == data) object->data = nullptr;
}

void NRT_MemInfo_call_dtor(Object *object) {
  je_numba_end(object);
  __builtin_free(object->data);
  __builtin_free(object);
}

void NRT_incref(Object *object) {
  if (object) ++object->count;
}

void NRT_decref(Object *object) {
  if (object && --object->count == 0) NRT_MemInfo_call_dtor(object);
}

}  // extern "C"
