// Allocatable arrays and pointers in Fortran, under the names by which flang calls what is done to them.
// provides: _FortranA(Allocatable|Pointer)(SetBounds|ApplyMold|Allocate|AllocateSource|Deallocate|DeallocatePolymorphic)
// provides: _FortranA(AllocatableInitDerived|AllocatableInitDerivedForAllocate|PointerNullifyDerived|MoveAlloc)
// provides: je_move_alloc
// provides: _FortranA(AllocatableDeallocateNoFinal|PointerIsAssociated|PointerIsAssociatedWith|PointerAssociate)
#include "fortran_descriptor.h"
#include "fortran_types.h"

using namespace je;

#define LOCATION const char *, int

namespace {

constexpr i32 kAlreadyAllocated = 104, kNotAllocated = 105;

void set_bounds_of(Descriptor &d, i32 dim, i64 lower, i64 upper) {
  i64 stride = d.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    if (k == dim) d.dim(k) = {upper < lower ? 1 : lower, upper < lower ? 0 : upper - lower + 1, stride};
    if (k < dim) stride *= d.dim(k).extent;
  }
}

// Type, rank and extents of another array; the memory stays.
void take_form(Descriptor &d, const Descriptor &mold, int rank) {
  const DerivedType *type = type_of(mold);
  d.bytes = mold.bytes;
  d.rank = rank;
  d.code = mold.code;
  d.extra = type ? kHasAddendum : 0;
  set_bounds(d, rank, extents(mold));
  if (type) set_type(d, type);
}

void describe_derived(Descriptor &d, const DerivedType &type, int rank, u8 attribute) {
  d.base = nullptr;
  d.bytes = type.bytes;
  d.version = kVersion;
  d.rank = rank;
  d.code = kStruct;
  d.attribute = attribute;
  d.extra = kHasAddendum;
  set_type(d, &type);
}

i32 allocate(Descriptor &d, const Descriptor *source) {
  if (source && owner(d)) {
    d.base = copied(d, *source, *owner(d));
    return 0;
  }
  d.base = new_memory(d);
  if (source)
    copy_all(d, extents(d), [&](const Index &i) { return source->rank == 0 ? source->base : address(*source, i); });
  else
    initialise_elements(d);
  return 0;
}

i32 allocate_new(Descriptor &d, const Descriptor *source, bool has_status) {
  if (d.base) {
    if (has_status) return kAlreadyAllocated;
    fail("ALLOCATE: the array is allocated already");
  }
  return allocate(d, source);
}

i32 deallocate(Descriptor &d, bool has_status, bool calls_final = true) {
  if (!d.base) {
    if (has_status) return kNotAllocated;
    fail("DEALLOCATE: the array is not allocated");
  }
  if (calls_final) finalise_elements(d);
  destroy_elements(d, owner(d));
  __builtin_free(d.base);
  d.base = nullptr;
  return 0;
}

i32 deallocate_polymorphic(Descriptor &d, const DerivedType *declared, bool has_status) {
  const i32 status = deallocate(d, has_status);
  if (declared && status == 0) {
    d.bytes = declared->bytes;
    set_type(d, declared);
  }
  return status;
}

}  // namespace

extern "C" {

void _FortranAAllocatableInitDerived(Descriptor &d, const DerivedType &type, i32 rank, i32) {
  describe_derived(d, type, rank, kAllocatable);
}

void _FortranAAllocatableInitDerivedForAllocate(Descriptor &d, const DerivedType &type, i32 rank, i32) {
  if (!d.base) describe_derived(d, type, rank, kAllocatable);
}

void _FortranAPointerNullifyDerived(Descriptor &d, const DerivedType &type, i32 rank, i32) {
  describe_derived(d, type, rank, kPointer);
}

void _FortranAAllocatableSetBounds(Descriptor &d, i32 dim, i64 lower, i64 upper) { set_bounds_of(d, dim, lower, upper); }
void _FortranAPointerSetBounds(Descriptor &d, i32 dim, i64 lower, i64 upper) { set_bounds_of(d, dim, lower, upper); }
void _FortranAAllocatableApplyMold(Descriptor &d, const Descriptor &mold, i32 rank) {
  if (!d.base) take_form(d, mold, rank);
}
void _FortranAPointerApplyMold(Descriptor &d, const Descriptor &mold, i32 rank) { take_form(d, mold, rank); }

i32 _FortranAAllocatableAllocate(Descriptor &d, i64 *, bool has_status, const Descriptor *, LOCATION, void *) {
  return allocate_new(d, nullptr, has_status);
}

i32 _FortranAAllocatableAllocateSource(Descriptor &d, const Descriptor &source, bool has_status, const Descriptor *,
                                       LOCATION) {
  return allocate_new(d, &source, has_status);
}

i32 _FortranAPointerAllocate(Descriptor &d, bool, const Descriptor *, LOCATION, void *) { return allocate(d, nullptr); }

i32 _FortranAPointerAllocateSource(Descriptor &d, const Descriptor &source, bool, const Descriptor *, LOCATION) {
  return allocate(d, &source);
}

i32 _FortranAAllocatableDeallocate(Descriptor &d, bool has_status, const Descriptor *, LOCATION) {
  return deallocate(d, has_status);
}

void _FortranAAllocatableDeallocateNoFinal(Descriptor &d, LOCATION) { deallocate(d, true, false); }

i32 _FortranAAllocatableDeallocatePolymorphic(Descriptor &d, const DerivedType *declared, bool has_status,
                                              const Descriptor *, LOCATION) {
  return deallocate_polymorphic(d, declared, has_status);
}

i32 _FortranAPointerDeallocate(Descriptor &d, bool has_status, const Descriptor *, LOCATION) {
  return deallocate(d, has_status);
}

i32 _FortranAPointerDeallocatePolymorphic(Descriptor &d, const DerivedType *declared, bool has_status,
                                          const Descriptor *, LOCATION) {
  return deallocate_polymorphic(d, declared, has_status);
}

// `declared` is the type of `from` where that may change with what is in it.
i32 _FortranAMoveAlloc(Descriptor &to, Descriptor &from, const DerivedType *declared, bool, const Descriptor *,
                       LOCATION) {
  if (to.base) deallocate(to, true);
  to.bytes = from.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < from.rank) to.dim(k) = from.dim(k);
  if (type_of(to)) set_type(to, type_of(from));
  to.base = from.base;
  from.base = nullptr;
  if (declared && type_of(from)) set_type(from, declared);
  return 0;
}

// Of arrays of numbers: see fortran_moves.py.
i32 je_move_alloc(Descriptor &to, Descriptor &from, const DerivedType *, bool, const Descriptor *, const char *,
                  int rank) {
  __builtin_free(to.base);
  to.bytes = from.bytes;
  for (int k = 0; k < rank; ++k) to.dim(k) = from.dim(k);
  to.base = from.base;
  from.base = nullptr;
  return 0;
}

void _FortranAPointerAssociate(Descriptor &d, const Descriptor &target) {
  take_form(d, target, target.rank);
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < target.rank) d.dim(k) = target.dim(k);
  d.base = target.base;
}

bool _FortranAPointerIsAssociated(const Descriptor &d) { return d.base != nullptr; }

bool _FortranAPointerIsAssociatedWith(const Descriptor &d, const Descriptor *target) {
  if (!target || !d.base || d.base != target->base || d.rank != target->rank) return !target && d.base;
  bool same = true;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < d.rank) {
      const i64 extent = d.dim(k).extent;
      if (extent != target->dim(k).extent || (extent > 1 && d.dim(k).stride != target->dim(k).stride)) same = false;
    }
  return same;
}

}  // extern "C"
