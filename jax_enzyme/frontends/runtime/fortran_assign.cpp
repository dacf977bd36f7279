// Assignment in Fortran, under the names by which flang calls it.
// provides: _FortranA(Assign|AssignTemporary|AssignPolymorphic|IsContiguous|CopyInAssign|CopyOutAssign|ShallowCopyDirect)
// provides: _FortranA(CopyAndUpdateDescriptor|IsAssumedSize)
#include "fortran_descriptor.h"
#include "fortran_types.h"

using namespace je;

#define LOCATION const char *, int

namespace {

bool same_shape(const Descriptor &a, const Descriptor &b) {
  bool same = true;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < a.rank && a.dim(k).extent != b.dim(k).extent) same = false;
  return same;
}

// Bytes from the base of an array that is not empty: the first that an element of it occupies, and the first after all.
struct Span {
  i64 low, high;
};

Span span(const Descriptor &d) {
  Span result = {0, d.bytes};
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < d.rank) {
      const i64 length = (d.dim(k).extent - 1) * d.dim(k).stride;
      (length < 0 ? result.low : result.high) += length;
    }
  return result;
}

// Whether the elements of one array may lie between those of another, other than each at its own place.
bool overlaps(const Descriptor &to, const Descriptor &from) {
  const i64 distance = reinterpret_cast<i64>(from.base) - reinterpret_cast<i64>(to.base);
  const Span a = span(to), b = span(from);
  if (distance + b.high <= a.low || distance + b.low >= a.high) return false;
  bool same = distance == 0;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < to.rank && to.dim(k).stride != from.dim(k).stride) same = false;
  return !same;
}

void take_shape(Descriptor &to, const Descriptor &from) {
  set_bounds(to, to.rank, extents(from));
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < to.rank) to.dim(k).lower = from.dim(k).lower;
}

// Both sides have one type, and one shape unless the right one is a scalar. Of a variable of a module neither is known
// where this is compiled, of an expression both are: the loop is made for whichever side is known.
void copy(const Descriptor &to, const Descriptor &from) {
  const bool scalar = from.rank == 0;
  const auto source = [&](const Index &i) { return scalar ? from.base : address(from, i); };
  if (is_number(from) != is_number(to)) fail("an assignment between types");
  if (is_number(from))
    with_number_of_both(to, from, [&](auto t) {
      using T = decltype(t);
      each(scalar ? extents(to) : extents(from),
           [&](const Index &i) { element<T>(to, i) = *reinterpret_cast<const T *>(source(i)); });
    });
  else
    copy_all(to, extents(to), source);
}

// The new objects are made before the old ones end, which they may be copies of.
void assign_objects(Descriptor &to, const Descriptor &from, const DerivedType &type, bool renewed, bool calls_final) {
  if (!type.has_no_assignment()) fail("a derived type with an assignment of its own");
  char *fresh = copied(renewed && from.rank ? from : to, from, type);
  if (calls_final) finalise_elements(to);
  if (to.base) destroy_elements(to, &type);
  if (renewed) {
    __builtin_free(to.base);
    if (from.rank) take_shape(to, from);
    to.base = fresh;
  } else {
    for (i64 i = 0, n = count(to); i < n; ++i) __builtin_memcpy(object(to, i), fresh + i * type.bytes, type.bytes);
    __builtin_free(fresh);
  }
}

// What is assigned to a temporary ends nothing.
void assign(Descriptor &to, const Descriptor &from, bool to_variable) {
  const bool renewed = to.attribute == kAllocatable && (!to.base || (from.rank && !same_shape(to, from)));
  if (owner(from) && owner(to)) return assign_objects(to, from, *owner(to), renewed, to_variable);
  if (to_variable && type_of(from)) finalise_elements(to);
  Local source(from);
  char *old = nullptr, *aside = nullptr;
  if (renewed) {
    old = to.base;
    if (to.code == kCharacter) to.bytes = from.bytes;
    if (from.rank) take_shape(to, from);
    to.base = new_memory(to);
  } else if (to_variable && from.rank && count(from) && overlaps(to, from)) {
    make_like(source, from, from.rank, extents(from));
    copy(source, from);
    aside = source.base;
  }
  copy(to, source);
  __builtin_free(old);
  __builtin_free(aside);
}

}  // namespace

extern "C" {

void _FortranAAssign(Descriptor &to, const Descriptor &from, LOCATION) { assign(to, from, true); }

// The left side takes the dynamic type of the right one, which may be an intrinsic one where the left is class(*).
void _FortranAAssignPolymorphic(Descriptor &to, const Descriptor &from, LOCATION) {
  const DerivedType *type = type_of(from), *old = type_of(to);
  if (to.attribute == kAllocatable && (type != old || to.code != from.code || (!type && to.bytes != from.bytes))) {
    if (to.base) {
      destroy_elements(to, owner(to));
      __builtin_free(to.base);
      to.base = nullptr;
    }
    to.bytes = from.bytes;
    to.code = from.code;
    set_type(to, type);
  }
  assign(to, from, true);
}

// Nothing is in a temporary yet.
void _FortranAAssignTemporary(Descriptor &to, const Descriptor &from, LOCATION) {
  if (to.base) initialise_elements(to);
  assign(to, from, false);
}

// -- arguments that have to be contiguous --------------------------------------------------------------------------

bool _FortranAIsContiguous(const Descriptor &d) { return is_contiguous(d); }

void _FortranACopyInAssign(Descriptor &temporary, const Descriptor &variable, LOCATION) {
  temporary.bytes = variable.bytes;
  make_like(temporary, variable, variable.rank, extents(variable));
  copy(temporary, variable);
}

void _FortranACopyOutAssign(Descriptor *variable, Descriptor &temporary, LOCATION) {
  if (variable) copy(*variable, temporary);
  __builtin_free(temporary.base);
  temporary.base = nullptr;
}

// -- arguments of any rank -----------------------------------------------------------------------------------------

// What `bounds` says of the lower ones: they stay, are 1, or are 0.
void _FortranACopyAndUpdateDescriptor(Descriptor &to, const Descriptor &from, const DerivedType *type, u8 attribute,
                                      i32 bounds) {
  to = from;
  to.attribute = attribute;
  if (type) {
    to.bytes = type->bytes;
    to.code = kStruct;
    to.extra |= kHasAddendum;
  }
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < from.rank) {
      to.dim(k) = from.dim(k);
      if (bounds) to.dim(k).lower = bounds == 1;
    }
  if (to.extra & kHasAddendum) set_type(to, type ? type : type_of(from));
}

bool _FortranAIsAssumedSize(const Descriptor &d) {
  bool is_open = false;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k == d.rank - 1) is_open = d.dim(k).extent == -1;
  return is_open;
}

void _FortranAShallowCopyDirect(const Descriptor &to, const Descriptor &from, LOCATION) { copy(to, from); }

}  // extern "C"
