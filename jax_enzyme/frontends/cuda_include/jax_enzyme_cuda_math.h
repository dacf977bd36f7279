// The mathematical functions of device code. Those of C's library are declared, CUDA's own are written with them.
#pragma once

// As in C++, integers count as doubles.
template <bool> struct __je_where {};
template <> struct __je_where<true> {
  typedef double real;
};

#define __JE_UNARY(name)                                                                                            \
  __JE_PURE double name(double);                                                                                    \
  __JE_PURE float name##f(float);                                                                                   \
  __JE float name(float x) { return name##f(x); }                                                                   \
  template <class T> __JE typename __je_where<__is_integral(T)>::real name(T x) { return name((double)x); }
__JE_UNARY(sin)
__JE_UNARY(cos)
__JE_UNARY(tan)
__JE_UNARY(asin)
__JE_UNARY(acos)
__JE_UNARY(atan)
__JE_UNARY(sinh)
__JE_UNARY(cosh)
__JE_UNARY(tanh)
__JE_UNARY(asinh)
__JE_UNARY(acosh)
__JE_UNARY(atanh)
__JE_UNARY(exp)
__JE_UNARY(exp2)
__JE_UNARY(expm1)
__JE_UNARY(log)
__JE_UNARY(log2)
__JE_UNARY(log10)
__JE_UNARY(log1p)
__JE_UNARY(logb)
__JE_UNARY(sqrt)
__JE_UNARY(cbrt)
__JE_UNARY(erf)
__JE_UNARY(erfc)
__JE_UNARY(tgamma)
__JE_UNARY(lgamma)
__JE_UNARY(j0)
__JE_UNARY(j1)
__JE_UNARY(y0)
__JE_UNARY(y1)
__JE_UNARY(fabs)
__JE_UNARY(floor)
__JE_UNARY(ceil)
__JE_UNARY(trunc)
__JE_UNARY(round)
__JE_UNARY(rint)
__JE_UNARY(nearbyint)
#undef __JE_UNARY
__JE_PURE double exp10(double);
__JE_PURE float exp10f(float);

#define __JE_BINARY(name)                                                                                           \
  __JE_PURE double name(double, double);                                                                            \
  __JE_PURE float name##f(float, float);                                                                            \
  __JE float name(float x, float y) { return name##f(x, y); }                                                       \
  template <class A, class B>                                                                                       \
  __JE typename __je_where<__is_arithmetic(A) && __is_arithmetic(B)>::real name(A x, B y) {                         \
    return name((double)x, (double)y);                                                                              \
  }
__JE_BINARY(pow)
__JE_BINARY(atan2)
__JE_BINARY(hypot)
__JE_BINARY(fmod)
__JE_BINARY(remainder)
__JE_BINARY(fmin)
__JE_BINARY(fmax)
__JE_BINARY(fdim)
__JE_BINARY(copysign)
__JE_BINARY(nextafter)
#undef __JE_BINARY
__JE float pow(float x, int n) { return powf(x, (float)n); }
__JE_PURE double fma(double, double, double);
__JE_PURE float fmaf(float, float, float);
__JE float fma(float x, float y, float z) { return fmaf(x, y, z); }
__JE_PURE double ldexp(double, int);
__JE_PURE float ldexpf(float, int);
__JE float ldexp(float x, int n) { return ldexpf(x, n); }
__JE float exp10(float x) { return exp10f(x); }
__JE double scalbln(double x, long n) { return ldexp(x, (int)n); }
__JE double scalbn(double x, int n) { return ldexp(x, n); }
__JE float scalbnf(float x, int n) { return ldexpf(x, n); }
__JE_PURE int ilogb(double);
__JE_PURE int ilogbf(float);
__JE_PURE double jn(int, double);
__JE_PURE double yn(int, double);
__JE_PURE float jnf(int, float);
__JE_PURE float ynf(int, float);
__JE_PURE long lround(double);
__JE_PURE long lroundf(float);
__JE_PURE long lrint(double);
__JE_PURE long lrintf(float);
__JE_PURE long long llround(double);
__JE_PURE long long llrint(double);
__JE long lround(float x) { return lroundf(x); }
__JE long lrint(float x) { return lrintf(x); }
__JE long long llround(float x) { return lroundf(x); }
__JE long long llrint(float x) { return lrintf(x); }
__JE_PURE long long llroundf(float);
__JE_PURE long long llrintf(float);
__JE int ilogb(float x) { return ilogbf(x); }
__JE_EXTERN double frexp(double, int *);
__JE_EXTERN float frexpf(float, int *);
__JE_EXTERN double modf(double, double *);
__JE_EXTERN float modff(float, float *);

__JE float frexp(float x, int *exponent) { return frexpf(x, exponent); }
__JE float modf(float x, float *whole) { return modff(x, whole); }

__JE double nan(const char *) { return __builtin_nan(""); }
__JE float nanf(const char *) { return __builtin_nanf(""); }
__JE void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
__JE void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
__JE void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
__JE int isnan(double x) { return x != x; }
__JE int isinf(double x) { return fabs(x) == __builtin_inf(); }
__JE int isfinite(double x) { return fabs(x) < __builtin_inf(); }
__JE int signbit(double x) { return __builtin_signbit(x); }
__JE int abs(int x) { return x < 0 ? -x : x; }
__JE long abs(long x) { return x < 0 ? -x : x; }
__JE long long abs(long long x) { return x < 0 ? -x : x; }
__JE long long llabs(long long x) { return x < 0 ? -x : x; }
__JE long labs(long x) { return x < 0 ? -x : x; }
__JE double abs(double x) { return fabs(x); }
__JE float abs(float x) { return fabsf(x); }
