// Assignment and allocation in Fortran, under the names by which flang calls them.
// provides: _FortranA(Assign|AssignTemporary|IsContiguous|CopyInAssign|CopyOutAssign|ShallowCopyDirect|MoveAlloc) _FortranA(Allocatable|Pointer)(SetBounds|Allocate|AllocateSource|Deallocate)
#include "fortran_descriptor.h"

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

// Whether an element of one array may lie in the bytes that another, contiguous and starting at its base, spans.
bool overlaps(const Descriptor &whole, const Descriptor &part) {
  const u64 bytes = count(whole) * whole.bytes;
  const u64 distance = reinterpret_cast<u64>(part.base) - reinterpret_cast<u64>(whole.base);
  i64 low = 0, high = part.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < part.rank) {
      const i64 span = (part.dim(k).extent - 1) * part.dim(k).stride;
      (span < 0 ? low : high) += span;
    }
  return static_cast<i64>(distance) + high > 0 && static_cast<i64>(distance) + low < static_cast<i64>(bytes);
}

void copy(const Descriptor &to, const Descriptor &from) {
  const bool scalar = from.rank == 0;
  copy_all(to, extents(to), [&](const Index &i) { return scalar ? from.base : address(from, i); });
}

// The elements of `from` in memory of their own.
char *copied(const Descriptor &from) {
  Local fresh;
  make_like(fresh, from, from.rank, extents(from));
  copy(fresh, from);
  return fresh.base;
}

void take_shape(Descriptor &to, const Descriptor &from) {
  set_bounds(to, to.rank, extents(from));
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < to.rank) to.dim(k).lower = from.dim(k).lower;
}

void assign(Descriptor &to, const Descriptor &from, bool may_overlap) {
  if (to.code == kStruct && (to.extra & kHasAddendum)) fail("assignment of a derived type with allocatable parts");
  const bool allocatable = to.attribute == kAllocatable;
  if (allocatable && (!to.base || (from.rank && !same_shape(to, from)))) {
    char *old = to.base;
    if (to.code == kCharacter) to.bytes = from.bytes;
    if (from.rank) take_shape(to, from);
    Local fresh(to);
    fresh.base = new_memory(to);
    copy(fresh, from);
    to.base = fresh.base;
    __builtin_free(old);
  } else if (may_overlap && allocatable && from.rank && overlaps(to, from)) {
    Local aside(from);
    set_bounds(aside, from.rank, extents(from));
    aside.base = copied(from);
    copy(to, aside);
    __builtin_free(aside.base);
  } else {
    copy(to, from);
  }
}

}  // namespace

extern "C" {

void _FortranAAssign(Descriptor &to, const Descriptor &from, LOCATION) { assign(to, from, true); }

void _FortranAAssignTemporary(Descriptor &to, const Descriptor &from, LOCATION) { assign(to, from, false); }

// -- arguments that have to be contiguous --------------------------------------------------------------------------

bool _FortranAIsContiguous(const Descriptor &d) {
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

void _FortranAShallowCopyDirect(const Descriptor &to, const Descriptor &from, LOCATION) { copy(to, from); }

// -- allocation ----------------------------------------------------------------------------------------------------

void _FortranAAllocatableSetBounds(Descriptor &d, i32 dim, i64 lower, i64 upper) {
  i64 stride = d.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    if (k == dim) d.dim(k) = {upper < lower ? 1 : lower, upper < lower ? 0 : upper - lower + 1, stride};
    if (k < dim) stride *= d.dim(k).extent;
  }
}

void _FortranAPointerSetBounds(Descriptor &d, i32 dim, i64 lower, i64 upper) {
  _FortranAAllocatableSetBounds(d, dim, lower, upper);
}

constexpr i32 kAlreadyAllocated = 104, kNotAllocated = 105;

i32 _FortranAAllocatableAllocate(Descriptor &d, i64 *, bool has_status, const Descriptor *, LOCATION, void *) {
  if (d.base) {
    if (has_status) return kAlreadyAllocated;
    fail("ALLOCATE: the array is allocated already");
  }
  d.base = new_memory(d);
  return 0;
}

i32 _FortranAAllocatableAllocateSource(Descriptor &d, const Descriptor &source, bool has_status, const Descriptor *,
                                       LOCATION) {
  if (d.base) {
    if (has_status) return kAlreadyAllocated;
    fail("ALLOCATE: the array is allocated already");
  }
  d.base = new_memory(d);
  copy(d, source);
  return 0;
}

i32 _FortranAAllocatableDeallocate(Descriptor &d, bool has_status, const Descriptor *, LOCATION) {
  if (!d.base) {
    if (has_status) return kNotAllocated;
    fail("DEALLOCATE: the array is not allocated");
  }
  __builtin_free(d.base);
  d.base = nullptr;
  return 0;
}

i32 _FortranAPointerAllocate(Descriptor &d, bool, const Descriptor *, LOCATION, void *) {
  d.base = new_memory(d);
  return 0;
}

i32 _FortranAPointerAllocateSource(Descriptor &d, const Descriptor &source, bool, const Descriptor *, LOCATION) {
  d.base = new_memory(d);
  copy(d, source);
  return 0;
}

i32 _FortranAPointerDeallocate(Descriptor &d, bool has_status, const Descriptor *error, const char *file, int line) {
  return _FortranAAllocatableDeallocate(d, has_status, error, file, line);
}

i32 _FortranAMoveAlloc(Descriptor &to, Descriptor &from, const void *, bool, const Descriptor *, LOCATION) {
  __builtin_free(to.base);
  to.bytes = from.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < from.rank) to.dim(k) = from.dim(k);
  to.base = from.base;
  from.base = nullptr;
  return 0;
}

}  // extern "C"
