// The functions of Fortran that move elements, under the names by which flang calls them.
// provides: _FortranA(Spread|Transpose|Cshift|CshiftVector|Eoshift|EoshiftVector|Transfer|TransferSize)
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

extern "C" {

void _FortranASpread(Descriptor &result, const Descriptor &source, i32 dim, i64 copies, LOCATION) {
  Extents n;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    const int from = k < dim - 1 ? k : k - 1;
    n.at[k] = k == dim - 1 ? (copies > 0 ? copies : 0) : from < source.rank && from >= 0 ? source.dim(from).extent : 1;
  }
  make_like(result, source, source.rank + 1, n);
  copy_all(result, n, [&](const Index &i) { return address(source, without(i, dim - 1)); });
}

void _FortranATranspose(Descriptor &result, const Descriptor &matrix, LOCATION) {
  const Extents n = {{matrix.dim(1).extent, matrix.dim(0).extent, 1, 1, 1, 1, 1}};
  make_like(result, matrix, 2, n);
  copy_all(result, n, [&](const Index &i) { return address(matrix, Index{{i.at[1], i.at[0]}}); });
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

// The elements of the source one behind another: numbers stay numbers of their type, whatever they are taken for.
static void transfer(Descriptor &result, const Descriptor &source) {
  const i64 bytes = count(result) * result.bytes;
  i64 at = 0;
  each(extents(source), [&](const Index &i) {
    const i64 rest = bytes - at;
    if (rest >= source.bytes) copy_element(source, result.base + at, address(source, i));
    else if (rest > 0) __builtin_memcpy(result.base + at, address(source, i), rest);
    at += source.bytes;
  });
  if (at < bytes) __builtin_memset(result.base + at, 0, bytes - at);
}

void _FortranATransferSize(Descriptor &result, const Descriptor &source, const Descriptor &mold, LOCATION, i64 size) {
  make_like(result, mold, 1, Extents{{size, 1, 1, 1, 1, 1, 1}});
  transfer(result, source);
}

void _FortranATransfer(Descriptor &result, const Descriptor &source, const Descriptor &mold, LOCATION) {
  const i64 size = mold.rank && mold.bytes ? (count(source) * source.bytes + mold.bytes - 1) / mold.bytes : 1;
  make_like(result, mold, mold.rank ? 1 : 0, Extents{{size, 1, 1, 1, 1, 1, 1}});
  transfer(result, source);
}

}  // extern "C"
