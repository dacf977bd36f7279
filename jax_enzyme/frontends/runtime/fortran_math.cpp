// Fortran's elemental functions of numbers, under the names by which flang calls them.
// provides: _FortranA(Mod|Modulo)Real[48] _FortranA[cz]pow[ik] _FortranA(Fraction|Scale|SetExponent|Spacing|Nearest)[48]
// provides: _FortranAExponent[48]_[48] _FortranAErfcScaled[48] _FortranARRSpacing[48]
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

namespace {

template <class T> T remainder_of(T a, T p) { return sizeof(T) == 4 ? T(__builtin_fmodf(a, p)) : T(__builtin_fmod(a, p)); }

template <class T> T modulo_of(T a, T p) {
  const T r = remainder_of(a, p);
  return r != 0 && (r < 0) != (p < 0) ? r + p : r;
}

// `z` to an integer power by squaring.
template <class T> T power(T z, i64 n) {
  u64 left = n < 0 ? -u64(n) : u64(n);
  T result = T(1), square = z;
  while (left) {
    if (left & 1) result = result * square;
    left >>= 1;
    if (left) square = square * square;
  }
  return n < 0 ? T(1) / result : result;
}

template <class T> int exponent(T x) {
  int e;
  if (!__builtin_isfinite(x)) return 0;
  __builtin_frexp(x, &e);
  return e;
}

template <class T> T scaled(T x, i64 by) {
  const int n = by > 100000 ? 100000 : by < -100000 ? -100000 : static_cast<int>(by);
  return sizeof(T) == 4 ? T(__builtin_ldexpf(x, n)) : T(__builtin_ldexp(x, n));
}

template <class T> constexpr int kDigits = sizeof(T) == 4 ? 24 : 53;
template <class T> constexpr int kLeastExponent = sizeof(T) == 4 ? -125 : -1021;

template <class T> T spacing(T x) {
  const int e = exponent(x), most = e > kLeastExponent<T> ? e : kLeastExponent<T>;
  return scaled(T(1), (x == 0 ? kLeastExponent<T> : most) - kDigits<T>);
}

// exp(x^2) erfc(x); beyond the first factor's range, the asymptotic series, whose terms are then below rounding.
template <class T> T erfc_scaled(T x) {
  if (x < T(sizeof(T) == 4 ? 9 : 25)) return T(__builtin_exp(double(x) * x) * __builtin_erfc(x));
  const T r = 1 / (2 * x * x);
  return T(0.56418958354775628695) / x * (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r * (1 - 9 * r)))));
}

}  // namespace

extern "C" {

typedef _Complex float c4;
typedef _Complex double c8;

c4 _FortranAcpowi(c4 z, i32 n) { return power(z, n); }
c4 _FortranAcpowk(c4 z, i64 n) { return power(z, n); }
c8 _FortranAzpowi(c8 z, i32 n) { return power(z, n); }
c8 _FortranAzpowk(c8 z, i64 n) { return power(z, n); }

#define FUNCTIONS(KIND, T)                                                                     \
  T _FortranAModReal##KIND(T a, T p, LOCATION) { return remainder_of(a, p); }                  \
  T _FortranAModuloReal##KIND(T a, T p, LOCATION) { return modulo_of(a, p); }                  \
  i32 _FortranAExponent##KIND##_4(T x) { return exponent(x); }                                 \
  i64 _FortranAExponent##KIND##_8(T x) { return exponent(x); }                                 \
  T _FortranAFraction##KIND(T x) { return scaled(x, -exponent(x)); }                           \
  T _FortranAScale##KIND(T x, i64 n) { return scaled(x, n); }                                  \
  T _FortranASetExponent##KIND(T x, i64 n) { return scaled(x, n - exponent(x)); }              \
  T _FortranASpacing##KIND(T x) { return spacing(x); }                                         \
  T _FortranARRSpacing##KIND(T x) { return (x < 0 ? -x : x) / spacing(x); }                    \
  T _FortranANearest##KIND(T x, bool up) {                                                     \
    const T towards = up ? T(__builtin_inf()) : -T(__builtin_inf());                           \
    return sizeof(T) == 4 ? T(__builtin_nextafterf(x, towards)) : T(__builtin_nextafter(x, towards)); \
  }                                                                                            \
  T _FortranAErfcScaled##KIND(T x) { return erfc_scaled(x); }
FUNCTIONS(4, float)
FUNCTIONS(8, double)

}  // extern "C"
