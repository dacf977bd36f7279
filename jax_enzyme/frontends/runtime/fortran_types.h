// How flang describes a derived type: constant tables of components, which an optimiser reads while it compiles. What
// is done to a component is written once for each level of nesting, so that nothing is left of the tables at run time.
#pragma once

namespace je {

// Fields that nothing here reads. What they hold is a descriptor: 24 bytes, 24 for a dimension, 16 for a type.
template <int kBytes> struct Unread {
  u8 bytes[kBytes];
};

struct Bound {
  i64 genre, value;
};

enum Genre : i8 { kData = 1, kPointerTo = 2, kAllocated = 3 };
enum Category : i8 { kIntegers, kUnsigned, kReals, kComplexes, kCharacters, kLogicals, kDerived };

struct DerivedType;

// What only a program with all its types can tell (frontends/fortran_classes.py): a byte of a type that has the same
// value in all of them is that value, and a procedure that is called at the end of an object is one of their FINAL
// procedures.
extern "C" inline i8 je_byte_of_type(const DerivedType *type, int at) { return reinterpret_cast<const i8 *>(type)[at]; }
extern "C" inline void je_call_final(void (*procedure)(void *), void *objects) { procedure(objects); }

struct Component {
  Unread<24> name;
  i8 genre, category, kind, rank;
  i64 offset;
  Bound length;
  const DerivedType *type;
  Unread<32> rest_of_type;
  Unread<64> parameters;
  const Bound *bounds;
  Unread<80> rest_of_bounds;
  const char *initial;
};

// A procedure that is bound to a type for a purpose of the language's.
struct Special {
  i8 purpose, takes_descriptor, is_bound_by_name, wants_contiguous;
  i32 unused;
  void (*procedure)(void *);
};

struct DerivedType {
  Unread<64> bindings;
  Unread<24> name;
  i64 bytes;
  Unread<136> parameters;
  const Component *components;
  Unread<16> element;
  Dimension component_count;
  Unread<16> rest_of_components;
  Unread<64> procedures;
  const Special *special;
  Unread<16> special_element;
  Dimension special_count;
  Unread<16> rest_of_special;
  i32 special_bits;
  i8 has_parent, no_initial, no_destruction, no_final, no_assignment;

  [[gnu::always_inline]] bool has(int at) const { return je_byte_of_type(this, at); }
  [[gnu::always_inline]] bool needs_no_initial() const { return has(__builtin_offsetof(DerivedType, no_initial)); }
  [[gnu::always_inline]] bool needs_no_destruction() const { return has(__builtin_offsetof(DerivedType, no_destruction)); }
  [[gnu::always_inline]] bool needs_no_final() const { return has(__builtin_offsetof(DerivedType, no_final)); }
  [[gnu::always_inline]] bool has_no_assignment() const { return has(__builtin_offsetof(DerivedType, no_assignment)); }
};

static_assert(sizeof(Component) == 256 && sizeof(DerivedType) == 440, "as flang lays them out");

// What lies behind the dimensions of a descriptor with an addendum.
struct Addendum {
  const DerivedType *type;
  i64 parameter;
};

// Calls `f(addendum)`. The place of each rank's is written as a constant: one that depends on a field of the descriptor
// would keep the optimiser from making values of all fields of a variable, the rank among them, where a loop changes it.
template <class F> inline void with_addendum(const Descriptor &d, F f) {
#pragma unroll
  for (int k = 0; k <= kMaxRank; ++k)
    if (k == d.rank) f(reinterpret_cast<const Addendum &>(d.dim(k)));
  if (d.rank > kMaxRank) fail("an array of more than 7 dimensions");
}

inline void set_type(Descriptor &d, const DerivedType *type) {
  with_addendum(d, [&](const Addendum &at) { const_cast<Addendum &>(at) = {type, 0}; });
}

inline const DerivedType *type_of(const Descriptor &d) {
  const DerivedType *type = nullptr;
  if (d.code == kStruct && (d.extra & kHasAddendum)) with_addendum(d, [&](const Addendum &at) { type = at.type; });
  return type;
}

inline i8 code_of(const Component &c) {
  switch (c.category) {
  case kReals: return c.kind == 4 ? kFloat : kDouble;
  case kComplexes: return c.kind == 4 ? kFloatComplex : kDoubleComplex;
  case kCharacters: return kCharacter;
  case kDerived: return kStruct;
  default: return 1;
  }
}

inline i64 element_bytes(const Component &c) {
  switch (c.category) {
  case kComplexes: return 2 * c.kind;
  case kCharacters: return c.kind * c.length.value;
  case kDerived: return c.type ? c.type->bytes : 0;  // of class(*) nothing is known
  default: return c.kind;
  }
}

inline i64 descriptor_bytes(const Component &c) { return 24 + 24 * c.rank + (c.category == kDerived ? 16 : 0); }

inline i64 data_count(const Component &c) {
  i64 n = 1;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < c.rank) {
      const i64 extent = c.bounds[2 * k + 1].value - c.bounds[2 * k].value + 1;
      n *= extent > 0 ? extent : 0;
    }
  return n;
}

inline Descriptor &in_place(const Component &c, char *object) {
  return *reinterpret_cast<Descriptor *>(object + c.offset);
}

// Calls `f(component)` for every component that is data, a pointer or allocatable, those of the parent type with it.
template <class F> inline void components(const DerivedType &type, F f) {
#pragma unroll
  for (i64 k = 0; k < type.component_count.extent; ++k) f(type.components[k]);
}

constexpr int kMostLevels = 3;
[[noreturn]] inline void too_deep() { fail("derived types nested more than 3 deep, or in themselves"); }

// -- default initialisation -----------------------------------------------------------------------------------------

// A descriptor of nothing, as a component that is a pointer or allocatable begins.
inline void disassociate(const Component &c, char *object) {
  Descriptor &d = in_place(c, object);
  d.base = nullptr;
  d.bytes = element_bytes(c);
  d.version = kVersion;
  d.rank = c.rank;
  d.code = code_of(c);
  d.attribute = c.genre == kPointerTo ? kPointer : kAllocatable;
  d.extra = c.category == kDerived ? kHasAddendum : 0;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < c.rank) d.dim(k) = {1, 0, 0};
  if (c.category == kDerived) set_type(d, c.type);
}

template <int kLevel = 0> inline void initialise(const DerivedType &type, char *object) {
  if (type.needs_no_initial()) return;
  if constexpr (kLevel == kMostLevels) too_deep();
  else
    components(type, [=](const Component &c) {
      if (c.genre != kData) disassociate(c, object);
      else if (c.initial) __builtin_memcpy(object + c.offset, c.initial, data_count(c) * element_bytes(c));
      else if (c.category == kDerived && !c.type->needs_no_initial())
        for (i64 i = 0, n = data_count(c); i < n; ++i)
          initialise<kLevel + 1>(*c.type, object + c.offset + i * c.type->bytes);
    });
}

// -- the end of an object -------------------------------------------------------------------------------------------

// Of a polymorphic component whose contents extend its type, what they own themselves is not looked for: tables that are
// chosen at run time would hide from the engine what an object is made of.
template <int kLevel = 0> inline void destroy(const DerivedType &type, char *object) {
  if (type.needs_no_destruction()) return;
  if constexpr (kLevel == kMostLevels) too_deep();
  else
    components(type, [=](const Component &c) {
      const bool allocated = c.genre == kAllocated;
      if (c.genre == kPointerTo || (!allocated && c.category != kDerived)) return;
      char *first = allocated ? in_place(c, object).base : object + c.offset;
      if (!first) return;
      if (c.category == kDerived) {
        const i64 n = allocated ? count(in_place(c, object)) : data_count(c);
        const bool extended = allocated && type_of(in_place(c, object)) != c.type;
        if (!extended && c.type && !c.type->needs_no_destruction())
          for (i64 i = 0; i < n; ++i) destroy<kLevel + 1>(*c.type, first + i * c.type->bytes);
      }
      if (allocated) {
        __builtin_free(first);
        in_place(c, object).base = nullptr;
      }
    });
}

// -- assignment -----------------------------------------------------------------------------------------------------

// Elements that follow each other in memory, as numbers where they are numbers.
inline void copy_flat(const Component &c, char *to, const char *from, i64 n) {
  Descriptor element;
  element.code = code_of(c);
  element.bytes = element_bytes(c);
  if (is_number(element))
    with_number(element, [=](auto t) {
      using T = decltype(t);
      for (i64 i = 0; i < n; ++i) reinterpret_cast<T *>(to)[i] = reinterpret_cast<const T *>(from)[i];
    });
  else
    __builtin_memcpy(to, from, n * element.bytes);
}

// Makes an object in memory in which there is nothing yet.
template <int kLevel = 0> inline void copy_object(const DerivedType &type, char *to, const char *from) {
  if (!type.has_no_assignment()) fail("a copy of what holds polymorphic objects, or has an assignment of its own");
  if constexpr (kLevel == kMostLevels) too_deep();
  else {
    __builtin_memcpy(to, from, type.bytes);
    components(type, [=](const Component &c) {
      const bool derived = c.category == kDerived, allocated = c.genre == kAllocated;
      if (c.genre == kPointerTo || (!allocated && (!derived || c.type->needs_no_destruction()))) return;
      char *target = to + c.offset;
      const char *source = from + c.offset;
      i64 n = 1;
      if (allocated) {
        Descriptor &made = in_place(c, to);
        source = made.base;
        if (!source) return;
        n = count(made);
        made.base = target = static_cast<char *>(__builtin_malloc(n * made.bytes ? n * made.bytes : 1));
      } else {
        n = data_count(c);
      }
      if (allocated && derived && type_of(in_place(c, to)) != c.type) fail("a copy of a polymorphic component");
      if (!derived) copy_flat(c, target, source, n);
      else if (c.type->needs_no_destruction()) __builtin_memcpy(target, source, n * c.type->bytes);
      else
        for (i64 i = 0; i < n; ++i)
          copy_object<kLevel + 1>(*c.type, target + i * c.type->bytes, source + i * c.type->bytes);
    });
  }
}

// -- arrays of objects ----------------------------------------------------------------------------------------------

// The type of objects that own memory: they are copied, and end, with all that is theirs. Null for all else.
inline const DerivedType *owner(const Descriptor &d) {
  const DerivedType *type = type_of(d);
  return type && !type->needs_no_destruction() ? type : nullptr;
}

// The address of an element by its number in array element order: one loop over all objects is less to compile than one
// for each dimension.
inline char *object(const Descriptor &d, i64 number) {
  i64 offset = 0;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < d.rank) {
      const bool last = k == d.rank - 1;
      offset += (last ? number : number % d.dim(k).extent) * d.dim(k).stride;
      if (!last) number /= d.dim(k).extent;
    }
  return d.base + offset;
}

// Makes the elements of an array in memory of its own.
inline char *copied(const Descriptor &like, const Descriptor &from, const DerivedType &type) {
  const i64 n = count(like);
  char *fresh = static_cast<char *>(__builtin_malloc(n * type.bytes ? n * type.bytes : 1));
  for (i64 i = 0; i < n; ++i) copy_object(type, fresh + i * type.bytes, object(from, from.rank == 0 ? 0 : i));
  return fresh;
}

inline void destroy_elements(const Descriptor &d, const DerivedType *type) {
  if (type)
    for (i64 i = 0, n = count(d); i < n; ++i) destroy(*type, object(d, i));
}

// -- what is called at the end of an object --------------------------------------------------------------------------

// Procedures for any rank element by element, for any rank as a whole, for scalars; for arrays, by their rank, behind them.
constexpr int kFinalOfElements = 7, kFinalOfAnyRank = 8, kFinalOfRank = 9;

inline bool is_contiguous(const Descriptor &d) {
  i64 stride = d.bytes;
  bool contiguous = true;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < d.rank) {
      if (d.dim(k).extent != 1 && d.dim(k).stride != stride) contiguous = false;
      stride *= d.dim(k).extent;
    }
  return contiguous || count(d) == 0;
}

// An array of objects as an argument: what `like` describes, at this place.
struct Objects : Local {
  Addendum room_for_type;

  Objects(const Descriptor &like, const DerivedType &type, char *place, int rank) : Local(like) {
    base = place;
    this->rank = rank;
    attribute = kPointer;
    set_type(*this, &type);
  }
};

inline int final_of(const DerivedType &type, int rank) {
  int found = -1, found_at = -1;
#pragma unroll
  for (i64 k = 0; k < type.special_count.extent; ++k) {
    const int purpose = type.special[k].purpose;
    const bool fits = purpose == kFinalOfRank + rank || purpose == kFinalOfAnyRank || purpose == kFinalOfElements;
    if (fits && purpose > found) found = purpose, found_at = k;
  }
  return found_at;
}

// Calls it for objects of a type that lie at a place, with as much of what `like` says as it takes.
inline void call_special(const Special &special, const Descriptor &like, const DerivedType &type, char *place, int rank) {
  if (special.takes_descriptor) {
    Objects objects(like, type, place, rank);
    je_call_final(special.procedure, &objects);
  } else {
    je_call_final(special.procedure, place);
  }
}

// No closure has the address of `d`, so that LLVM sees that nothing here changes it.
inline void call_final(const Descriptor &d, const DerivedType &type) {
  const int at = final_of(type, d.rank);
  if (at < 0) return;
  const Special &special = type.special[at];
  if (special.purpose == kFinalOfElements)
    for (i64 i = 0, n = count(d); i < n; ++i) call_special(special, d, type, object(d, i), 0);
  else if (d.rank && special.wants_contiguous && !is_contiguous(d))
    fail("a FINAL procedure for an array whose elements do not follow each other");
  else
    call_special(special, d, type, d.base, d.rank);
}

// The parent's, which is the first component, comes last.
template <int kLevel = 0> inline void finalise(const Descriptor &d, const DerivedType &type) {
  if (!d.base || type.needs_no_final()) return;
  if constexpr (kLevel == kMostLevels) too_deep();
  else {
    call_final(d, type);
    const i64 parts = type.component_count.extent;
#pragma unroll
    for (i64 k = 0; k < parts; ++k) {
      const Component &c = type.components[(k + type.has_parent) % parts];
      if (c.category != kDerived || c.genre == kPointerTo) continue;
      const bool allocated = c.genre == kAllocated;
      if (!allocated && c.type->needs_no_final()) continue;
      for (i64 i = 0, n = count(d); i < n; ++i) {
        char *whole = object(d, i);
        if (!allocated) {
          Local none;
          none.bytes = c.type->bytes;
          none.version = kVersion;
          none.rank = c.rank;
          none.code = kStruct;
          none.extra = kHasAddendum;
          Objects part(none, *c.type, whole + c.offset, c.rank);
          Extents lengths;
#pragma unroll
          for (int dim = 0; dim < kMaxRank; ++dim)
            lengths.at[dim] = dim < c.rank ? c.bounds[2 * dim + 1].value - c.bounds[2 * dim].value + 1 : 1;
          set_bounds(part, c.rank, lengths);
          set_type(part, c.type);
          finalise<kLevel + 1>(part, *c.type);
        } else if (Descriptor &part = in_place(c, whole); part.base) {
          const DerivedType *dynamic = type_of(part);
          if (dynamic != c.type && dynamic && !dynamic->needs_no_final())
            fail("a FINAL procedure of a polymorphic component");
          if (c.type) finalise<kLevel + 1>(part, *c.type);
        }
      }
    }
  }
}

inline void finalise_elements(const Descriptor &d) {
  if (const DerivedType *type = type_of(d)) finalise(d, *type);
}

inline void initialise_elements(const Descriptor &d) {
  const DerivedType *type = type_of(d);
  if (type && !type->needs_no_initial())
    for (i64 i = 0, n = count(d); i < n; ++i) initialise(*type, object(d, i));
}

}  // namespace je
