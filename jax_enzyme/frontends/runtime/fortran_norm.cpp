// NORM2, and REDUCE with a function of the program's own, under the names by which flang calls them.
// provides: _FortranANorm2(_[48]|Dim) _FortranAReduceReal[48](Ref|Value)
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

namespace {

template <class T> T norm(i64 n, auto at) {
  T sum = 0;
  for (i64 i = 0; i < n; ++i) sum += at(i) * at(i);
  const T tiny = sizeof(T) == 4 ? T(1e-30) : T(1e-290), huge = sizeof(T) == 4 ? T(1e35) : T(1e300);
  if (sum > tiny && sum < huge) return sizeof(T) == 4 ? T(__builtin_sqrtf(sum)) : T(__builtin_sqrt(sum));
  // Again with the greatest taken out, lest squares leave the range.
  T most = 0;
  for (i64 i = 0; i < n; ++i) {
    const T size = at(i) < 0 ? -at(i) : at(i);
    if (!(size <= most)) most = size;
  }
  if (!(most > 0)) return most;
  T scaled = 0;
  for (i64 i = 0; i < n; ++i) scaled += (at(i) / most) * (at(i) / most);
  return most * (sizeof(T) == 4 ? T(__builtin_sqrtf(scaled)) : T(__builtin_sqrt(scaled)));
}

template <class T> T norm_of(const Descriptor &x) {
  if (x.rank == 1) return norm<T>(x.dim(0).extent, [&](i64 i) { return element<T>(x, i); });
  const Extents n = extents(x);
  return norm<T>(count(x), [&](i64 position) {
    Index i = {};
#pragma unroll
    for (int k = 0; k < kMaxRank; ++k) {
      i.at[k] = position % n.at[k];
      position /= n.at[k];
    }
    return element<T>(x, i);
  });
}

}  // namespace

extern "C" {

float _FortranANorm2_4(const Descriptor &x, LOCATION, int) { return norm_of<float>(x); }
double _FortranANorm2_8(const Descriptor &x, LOCATION, int) { return norm_of<double>(x); }

void _FortranANorm2Dim(Descriptor &result, const Descriptor &x, i32 dim, LOCATION) {
  make_like(result, x, x.rank - 1, without_dimension(x, dim - 1));
  const i64 length = extent_of(extents(x), dim - 1);
  lines(x, dim - 1, [&](const Index &line, const Index &target) {
    auto at = [&](auto t) { return [&, t](i64 k) { return element<decltype(t)>(x, with(line, dim - 1, k)); }; };
    if (x.code == kFloat) element<float>(result, target) = norm<float>(length, at(float{}));
    else element<double>(result, target) = norm<double>(length, at(double{}));
  });
}

#define FOLDS(KIND, T)                                                                                         \
  T _FortranAReduceReal##KIND##Ref(const Descriptor &x, T (*step)(const T *, const T *), LOCATION, int,        \
                                   const Descriptor *mask, const T *identity, bool) {                          \
    bool started = identity != nullptr;                                                                        \
    T total = started ? *identity : T(0);                                                                      \
    each(extents(x), [&](const Index &i) {                                                                     \
      if (chosen(mask, i)) {                                                                                   \
        const T value = element<T>(x, i);                                                                      \
        total = started ? step(&total, &value) : value;                                                        \
        started = true;                                                                                        \
      }                                                                                                        \
    });                                                                                                        \
    return total;                                                                                              \
  }                                                                                                            \
  T _FortranAReduceReal##KIND##Value(const Descriptor &x, T (*step)(T, T), LOCATION, int,                      \
                                     const Descriptor *mask, const T *identity, bool) {                        \
    bool started = identity != nullptr;                                                                        \
    T total = started ? *identity : T(0);                                                                      \
    each(extents(x), [&](const Index &i) {                                                                     \
      if (chosen(mask, i)) {                                                                                   \
        total = started ? step(total, element<T>(x, i)) : element<T>(x, i);                                    \
        started = true;                                                                                        \
      }                                                                                                        \
    });                                                                                                        \
    return total;                                                                                              \
  }
FOLDS(4, float)
FOLDS(8, double)

}  // extern "C"
