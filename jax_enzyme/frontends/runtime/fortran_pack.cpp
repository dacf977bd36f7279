// The functions of Fortran that gather and scatter elements, under the names by which flang calls them.
// provides: _FortranA(Pack|Unpack|Reshape)
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

extern "C" {

void _FortranAPack(Descriptor &result, const Descriptor &source, const Descriptor &mask, const Descriptor *vector,
                   LOCATION) {
  const Extents n = extents(source);
  i64 found = 0;
  each(n, [&](const Index &i) { found += chosen(&mask, i); });
  const bool filled = vector && vector->base;
  const i64 room = filled ? vector->dim(0).extent : found;
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
  const int rank = static_cast<int>(shape.dim(0).extent);
  Extents n, place;  // place.at[k]: the dimension of the result that is counted k-th
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) {
    n.at[k] = k < rank ? integer(shape.base + k * shape.dim(0).stride, shape.bytes) : 1;
    place.at[k] = k < rank && order && order->base ? integer(order->base + k * order->dim(0).stride, order->bytes) - 1
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

}  // extern "C"
