// Memory of D's programs, which nobody frees: what is left is freed when a call ends. Types are described by objects, of
// which those of numbers, and the tables that tell kinds of types apart, are D's library's own.
// provides: _d_allocmemory _d_allocclass _d_newitem[TU] _d_newitemiT _d_newarray[TU] _d_newarrayiT _d_arrayappendcTX
// provides: _D6object6Object(8toString|6toHash|5opCmp|8opEquals)\w+
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

struct Bytes { size_t length; const void *data; };
struct Type { const void *const *table; void *monitor; };
struct Wrapped : Type { const Type *next; size_t length; };  // constants, enumerations, arrays
struct Record : Type { Bytes name, initial; };               // structures, and here numbers as well
struct Class : Type { Bytes initial; };

const void *const number_table[1] = {nullptr};
const uint32_t kLetter = 0xffff;
const float kFloat = __builtin_nanf("");
const double kDouble = __builtin_nan("");
const long double kReal = __builtin_nanl("");

struct alignas(16) Block { Block *before; };

// A file-scope object of a call: its destructor runs when the call ends.
struct Heap {
  Block *last = nullptr;
  ~Heap() {
    while (Block *block = last) {
      last = block->before;
      free(block);
    }
  }
  void *allocate(size_t size) {
    Block *block = static_cast<Block *>(calloc(1, sizeof(Block) + size));
    if (!block) abort();
    block->before = last;
    last = block;
    return block + 1;
  }
};
Heap heap;

} // namespace

extern "C" {

extern const void *const struct_table[] __asm__("_D15TypeInfo_Struct6__vtblZ");
extern const void *const constant_table[] __asm__("_D14TypeInfo_Const6__vtblZ");
extern const void *const immutable_table[] __asm__("_D18TypeInfo_Invariant6__vtblZ");
extern const void *const enum_table[] __asm__("_D13TypeInfo_Enum6__vtblZ");
extern const void *const array_table[] __asm__("_D14TypeInfo_Array6__vtblZ");
extern const void *const delegate_table[] __asm__("_D17TypeInfo_Delegate6__vtblZ");
extern const void *const fixed_table[] __asm__("_D20TypeInfo_StaticArray6__vtblZ");
extern const void *const class_table[] __asm__("_D14TypeInfo_Class6__vtblZ");
extern const void *const pointer_table[] __asm__("_D16TypeInfo_Pointer6__vtblZ");
const void *const struct_table[21] = {struct_table};
const void *const constant_table[21] = {constant_table};
const void *const immutable_table[21] = {immutable_table};
const void *const enum_table[21] = {enum_table};
const void *const array_table[21] = {array_table};
const void *const delegate_table[21] = {delegate_table};
const void *const fixed_table[21] = {fixed_table};
const void *const class_table[21] = {class_table};
const void *const pointer_table[21] = {pointer_table};

extern const Class object_class __asm__("_D6Object7__ClassZ");
const Class object_class = {{class_table, nullptr}, {16, nullptr}};

#define NUMBER(letter, size, initial)                                                                \
  extern const Record number_##letter __asm__("_D10TypeInfo_" #letter "6__initZ");                   \
  const Record number_##letter = {{number_table, nullptr}, {}, {size, initial}};                     \
  extern const Wrapped array_##letter __asm__("_D11TypeInfo_A" #letter "6__initZ");                  \
  const Wrapped array_##letter = {{array_table, nullptr}, &number_##letter, 0};
NUMBER(b, 1, nullptr)
NUMBER(g, 1, nullptr)
NUMBER(h, 1, nullptr)
NUMBER(a, 1, &kLetter)
NUMBER(s, 2, nullptr)
NUMBER(t, 2, nullptr)
NUMBER(u, 2, &kLetter)
NUMBER(i, 4, nullptr)
NUMBER(k, 4, nullptr)
NUMBER(w, 4, &kLetter)
NUMBER(l, 8, nullptr)
NUMBER(m, 8, nullptr)
NUMBER(f, 4, &kFloat)
NUMBER(d, 8, &kDouble)
NUMBER(e, 16, &kReal)

} // extern "C"

namespace {

const Type *inner(const Type *type) {
  while (type->table == constant_table || type->table == immutable_table || type->table == enum_table)
    type = static_cast<const Wrapped *>(type)->next;
  return type;
}

size_t size_of(const Type *type) {
  size_t count = 1;
  for (type = inner(type); type->table == fixed_table; type = inner(static_cast<const Wrapped *>(type)->next))
    count *= static_cast<const Wrapped *>(type)->length;
  if (type->table == number_table || type->table == struct_table)
    return count * static_cast<const Record *>(type)->initial.length;
  return count * (type->table == array_table || type->table == delegate_table ? 16 : 8);
}

// What elements of a type are before anything is stored there, where that is not zero.
void initialise(void *memory, const Type *type, size_t size) {
  for (type = inner(type); type->table == fixed_table;) type = inner(static_cast<const Wrapped *>(type)->next);
  const Bytes initial = static_cast<const Record *>(type)->initial;
  for (size_t at = 0; initial.data && at < size; at += initial.length)
    memcpy(static_cast<char *>(memory) + at, initial.data, initial.length);
}

const Type *element(const Type *array) { return static_cast<const Wrapped *>(inner(array))->next; }

struct Array { size_t length; void *data; };

} // namespace

extern "C" {

void *_d_allocmemory(size_t size) { return heap.allocate(size); }

void *_d_newitemU(const Type *type) { return heap.allocate(size_of(type)); }
void *_d_newitemT(const Type *type) { return heap.allocate(size_of(type)); }
void *_d_newitemiT(const Type *type) {
  void *memory = heap.allocate(size_of(type));
  initialise(memory, type, size_of(type));
  return memory;
}

// Its initial bytes, with the table of virtual functions, are stored by the caller.
void *_d_allocclass(const Class *type) { return heap.allocate(type->initial.length); }

Array _d_newarrayU(const Type *type, size_t length) { return {length, heap.allocate(length * size_of(element(type)))}; }
Array _d_newarrayT(const Type *type, size_t length) { return _d_newarrayU(type, length); }
Array _d_newarrayiT(const Type *type, size_t length) {
  const Array made = _d_newarrayU(type, length);
  initialise(made.data, element(type), length * size_of(element(type)));
  return made;
}

// With room for more at the end, which no array has for itself alone.
Array _d_arrayappendcTX(const Type *type, Array *array, size_t more) {
  const Array made = _d_newarrayU(type, array->length + more);
  memcpy(made.data, array->data, array->length * size_of(element(type)));
  return *array = made;
}

Array _D6object6Object8toStringMFZAya(void *) { abort(); }
size_t _D6object6Object6toHashMFNbNeZm(void *) { abort(); }
int _D6object6Object5opCmpMFCQqZi(void *, void *) { abort(); }
bool _D6object6Object8opEqualsMFCQtZb(void *, void *) { abort(); }

} // extern "C"
