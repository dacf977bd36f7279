// Assignment, allocation and the transformational functions of Fortran, under the names by which flang calls them.
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

namespace {

bool same_shape(const Descriptor &a, const Descriptor &b) {
  bool same = true;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < a.rank && a.dim[k].extent != b.dim[k].extent) same = false;
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
      const i64 span = (part.dim[k].extent - 1) * part.dim[k].stride;
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
  Descriptor fresh;
  make_like(fresh, from, from.rank, extents(from));
  copy(fresh, from);
  return fresh.base;
}

void take_shape(Descriptor &to, const Descriptor &from) {
  set_bounds(to, to.rank, extents(from));
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < to.rank) to.dim[k].lower = from.dim[k].lower;
}

void assign(Descriptor &to, const Descriptor &from, bool may_overlap) {
  if (to.code == kStruct && (to.extra & kHasAddendum)) fail("assignment of a derived type with allocatable parts");
  const bool allocatable = to.attribute == kAllocatable;
  if (allocatable && (!to.base || (from.rank && !same_shape(to, from)))) {
    char *old = to.base;
    if (to.code == kCharacter) to.bytes = from.bytes;
    if (from.rank) take_shape(to, from);
    Descriptor fresh = to;
    fresh.base = new_memory(to);
    copy(fresh, from);
    to.base = fresh.base;
    __builtin_free(old);
  } else if (may_overlap && allocatable && from.rank && overlaps(to, from)) {
    Descriptor aside = from;
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
      if (d.dim[k].extent != 1 && d.dim[k].stride != stride) contiguous = false;
      stride *= d.dim[k].extent;
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
    if (k == dim) d.dim[k] = {upper < lower ? 1 : lower, upper < lower ? 0 : upper - lower + 1, stride};
    if (k < dim) stride *= d.dim[k].extent;
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
    if (k < from.rank) to.dim[k] = from.dim[k];
  to.base = from.base;
  from.base = nullptr;
  return 0;
}

// -- array constructors --------------------------------------------------------------------------------------------

// flang leaves room for this and knows nothing else of it.
struct Constructor {
  Descriptor *to;
  i64 next, room;
};

void _FortranAInitArrayConstructorVector(Constructor &vector, Descriptor &to, bool, LOCATION) {
  vector.to = &to;
  vector.next = 0;
  vector.room = to.base ? to.dim[0].extent : 0;
  if (!to.base) to.dim[0] = {1, 0, to.bytes};
}

static void reserve(Constructor &vector, i64 wanted) {
  Descriptor &to = *vector.to;
  if (wanted > vector.room) {
    const i64 doubled = 2 * vector.room;
    const i64 room = wanted > doubled ? wanted : doubled;
    Descriptor fresh = to;
    fresh.base = static_cast<char *>(__builtin_malloc(room * to.bytes));
    copy_all(fresh, {{vector.next, 1, 1, 1, 1, 1, 1}}, [&](const Index &i) { return address(to, i); });
    __builtin_free(to.base);
    to.base = fresh.base;
    vector.room = room;
  }
  if (wanted > to.dim[0].extent) to.dim[0].extent = wanted;
}

void _FortranAPushArrayConstructorValue(Constructor &vector, const Descriptor &from) {
  const i64 start = vector.next, more = count(from);
  reserve(vector, start + more);
  Descriptor rest = *vector.to;
  rest.base += start * rest.bytes;
  const Extents n = extents(from);
  if (from.rank == 1) {
    copy_all(rest, n, [&](const Index &i) { return address(from, i); });
  } else {
    i64 at = 0;
    each(n, [&](const Index &i) { copy_element(rest, rest.base + at++ * rest.bytes, address(from, i)); });
  }
  vector.next = start + more;
}

void _FortranAPushArrayConstructorSimpleScalar(Constructor &vector, void *from) {
  const i64 at = vector.next;
  reserve(vector, at + 1);
  copy_element(*vector.to, vector.to->base + at * vector.to->bytes, static_cast<char *>(from));
  vector.next = at + 1;
}

// -- moving elements -----------------------------------------------------------------------------------------------

void _FortranASpread(Descriptor &result, const Descriptor &source, i32 dim, i64 copies, LOCATION) {
  Extents n;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    const int from = k < dim - 1 ? k : k - 1;
    n.at[k] = k == dim - 1 ? (copies > 0 ? copies : 0) : from < source.rank && from >= 0 ? source.dim[from].extent : 1;
  }
  make_like(result, source, source.rank + 1, n);
  copy_all(result, n, [&](const Index &i) { return address(source, without(i, dim - 1)); });
}

void _FortranATranspose(Descriptor &result, const Descriptor &matrix, LOCATION) {
  const Extents n = {{matrix.dim[1].extent, matrix.dim[0].extent, 1, 1, 1, 1, 1}};
  make_like(result, matrix, 2, n);
  copy_all(result, n, [&](const Index &i) { return address(matrix, Index{{i.at[1], i.at[0]}}); });
}

void _FortranAPack(Descriptor &result, const Descriptor &source, const Descriptor &mask, const Descriptor *vector,
                   LOCATION) {
  const Extents n = extents(source);
  i64 found = 0;
  each(n, [&](const Index &i) { found += chosen(&mask, i); });
  const bool filled = vector && vector->base;
  const i64 room = filled ? vector->dim[0].extent : found;
  make_like(result, source, 1, {{room, 1, 1, 1, 1, 1, 1}});
  i64 at = 0;
  with_number(source, [&](auto t) {
    using T = decltype(t);
    each(n, [&](const Index &i) {
      if (chosen(&mask, i)) element<T>(result, at++) = element<T>(source, i);
    });
    if (filled)
      for (; at < room; ++at) element<T>(result, at) = element<T>(*vector, at);
  });
}

void _FortranAUnpack(Descriptor &result, const Descriptor &vector, const Descriptor &mask, const Descriptor &field,
                     LOCATION) {
  const Extents n = extents(mask);
  make_like(result, vector, mask.rank, n);
  i64 at = 0;
  with_number(vector, [&](auto t) {
    using T = decltype(t);
    each(n, [&](const Index &i) {
      if (chosen(&mask, i)) element<T>(result, i) = element<T>(vector, at++);
      else element<T>(result, i) = field.rank ? element<T>(field, i) : *reinterpret_cast<T *>(field.base);
    });
  });
}

void _FortranAReshape(Descriptor &result, const Descriptor &source, const Descriptor &shape, const Descriptor *pad,
                      const Descriptor *order, LOCATION) {
  const int rank = static_cast<int>(shape.dim[0].extent);
  Extents n, place;  // place.at[k]: the dimension of the result that is counted k-th
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    n.at[k] = k < rank ? integer(shape.base + k * shape.dim[0].stride, shape.bytes) : 1;
    place.at[k] = k < rank && order && order->base ? integer(order->base + k * order->dim[0].stride, order->bytes) - 1
                                                   : k;
  }
  make_like(result, source, rank, n);
  Extents counted = {};
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) counted.at[k] = extent_of(n, static_cast<int>(place.at[k]));
  const Extents from = extents(source);
  const i64 there = count(source), padding = pad && pad->base ? count(*pad) : 0;
  const Extents of_pad = padding ? extents(*pad) : Extents{{1, 1, 1, 1, 1, 1, 1}};
  i64 at = 0;
  auto nth = [](const Extents &n, i64 position) {
    Index i;
#pragma unroll
    for (int k = 0; k < kMaxRank; ++k) {
      i.at[k] = k == kMaxRank - 1 || n.at[k] == 0 ? position : position % n.at[k];
      position = n.at[k] ? position / n.at[k] : 0;
    }
    return i;
  };
  with_number(source, [&](auto t) {
    using T = decltype(t);
    each(counted, [&](const Index &i) {
      Index target = {};
#pragma unroll
      for (int k = 0; k < kMaxRank; ++k) target = with(target, static_cast<int>(place.at[k]), i.at[k]);
      if (at < there) element<T>(result, target) = element<T>(source, nth(from, at));
      else if (padding) element<T>(result, target) = element<T>(*pad, nth(of_pad, (at - there) % padding));
      ++at;
    });
  });
}

static i64 modulo(i64 i, i64 n) {
  const i64 r = i % n;
  return r < 0 ? r + n : r;
}

void _FortranACshift(Descriptor &result, const Descriptor &source, const Descriptor &shift, i32 dim, LOCATION) {
  const Extents n = extents(source);
  const i64 length = extent_of(n, dim - 1);
  make_like(result, source, source.rank, n);
  copy_all(result, n, [&](const Index &i) {
    const char *by = shift.rank ? address(shift, without(i, dim - 1)) : shift.base;
    i64 at = 0;
#pragma unroll
    for (int k = 0; k < kMaxRank; ++k)
      if (k == dim - 1) at = i.at[k];
    return address(source, with(i, dim - 1, modulo(at + integer(by, shift.bytes), length)));
  });
}

void _FortranACshiftVector(Descriptor &result, const Descriptor &source, i64 shift, LOCATION) {
  const Extents n = extents(source);
  make_like(result, source, 1, n);
  copy_all(result, n, [&](const Index &i) { return address(source, Index{{modulo(i.at[0] + shift, n.at[0])}}); });
}

static void end_off_shift(Descriptor &result, const Descriptor &source, const Descriptor *shift, i64 by,
                          const Descriptor *boundary, int dim) {
  const Extents n = extents(source);
  const i64 length = extent_of(n, dim - 1);
  make_like(result, source, source.rank, n);
  const bool filled = boundary && boundary->base;
  with_number(source, [&](auto t) {
    using T = decltype(t);
    each(n, [&](const Index &i) {
      const Index line = without(i, dim - 1);
      const i64 moved = shift ? integer(shift->rank ? address(*shift, line) : shift->base, shift->bytes) : by;
      i64 at = moved;
#pragma unroll
      for (int k = 0; k < kMaxRank; ++k)
        if (k == dim - 1) at += i.at[k];
      if (at >= 0 && at < length) element<T>(result, i) = element<T>(source, with(i, dim - 1, at));
      else if (!filled) element<T>(result, i) = T{};
      else element<T>(result, i) = *reinterpret_cast<T *>(boundary->rank ? address(*boundary, line) : boundary->base);
    });
  });
}

void _FortranAEoshift(Descriptor &result, const Descriptor &source, const Descriptor &shift, const Descriptor *boundary,
                      i32 dim, LOCATION) {
  end_off_shift(result, source, &shift, 0, boundary, dim);
}

void _FortranAEoshiftVector(Descriptor &result, const Descriptor &source, i64 shift, const Descriptor *boundary,
                            LOCATION) {
  end_off_shift(result, source, nullptr, shift, boundary, 1);
}

}  // extern "C"
