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

#define __JE_ORDER(T)                                     \
  __JE T min(T x, T y) { return y < x ? y : x; }          \
  __JE T max(T x, T y) { return x < y ? y : x; }
__JE_ORDER(int)
__JE_ORDER(unsigned)
__JE_ORDER(long)
__JE_ORDER(unsigned long)
__JE_ORDER(long long)
__JE_ORDER(unsigned long long)
#undef __JE_ORDER
#define __JE_ORDER(T)                                                   \
  __JE unsigned T min(T x, unsigned T y) { return min((unsigned T)x, y); }   \
  __JE unsigned T min(unsigned T x, T y) { return min(x, (unsigned T)y); }   \
  __JE unsigned T max(T x, unsigned T y) { return max((unsigned T)x, y); }   \
  __JE unsigned T max(unsigned T x, T y) { return max(x, (unsigned T)y); }
__JE_ORDER(int)
__JE_ORDER(long)
__JE_ORDER(long long)
#undef __JE_ORDER
__JE unsigned umin(unsigned x, unsigned y) { return min(x, y); }
__JE unsigned umax(unsigned x, unsigned y) { return max(x, y); }
__JE long long llmin(long long x, long long y) { return min(x, y); }
__JE long long llmax(long long x, long long y) { return max(x, y); }
__JE unsigned long long ullmin(unsigned long long x, unsigned long long y) { return min(x, y); }
__JE unsigned long long ullmax(unsigned long long x, unsigned long long y) { return max(x, y); }
__JE float min(float x, float y) { return fminf(x, y); }
__JE float max(float x, float y) { return fmaxf(x, y); }
__JE double min(double x, double y) { return fmin(x, y); }
__JE double max(double x, double y) { return fmax(x, y); }
__JE double min(float x, double y) { return fmin((double)x, y); }
__JE double min(double x, float y) { return fmin(x, (double)y); }
__JE double max(float x, double y) { return fmax((double)x, y); }
__JE double max(double x, float y) { return fmax(x, (double)y); }

// ---- CUDA's own

__JE double rsqrt(double x) { return 1.0 / sqrt(x); }
__JE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
__JE float rsqrt(float x) { return rsqrtf(x); }
__JE double rcbrt(double x) { return 1.0 / cbrt(x); }
__JE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
__JE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
__JE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
__JE double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
__JE float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
__JE double norm4d(double a, double b, double c, double d) { return sqrt(a * a + b * b + c * c + d * d); }
__JE float norm4df(float a, float b, float c, float d) { return sqrtf(a * a + b * b + c * c + d * d); }
__JE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
__JE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
__JE double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
__JE float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
__JE double norm(int n, const double *p) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) sum += p[i] * p[i];
  return sqrt(sum);
}
__JE float normf(int n, const float *p) {
  float sum = 0.0f;
  for (int i = 0; i < n; i++) sum += p[i] * p[i];
  return sqrtf(sum);
}
__JE double rnorm(int n, const double *p) { return 1.0 / norm(n, p); }
__JE float rnormf(int n, const float *p) { return 1.0f / normf(n, p); }
__JE double sinpi(double x) { double r = x - 2.0 * rint(0.5 * x); return sin(3.14159265358979323846 * r); }
__JE double cospi(double x) { double r = x - 2.0 * rint(0.5 * x); return cos(3.14159265358979323846 * r); }
__JE float sinpif(float x) { float r = x - 2.0f * rintf(0.5f * x); return sinf(3.14159265f * r); }
__JE float cospif(float x) { float r = x - 2.0f * rintf(0.5f * x); return cosf(3.14159265f * r); }
__JE void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
__JE void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
__JE double normcdf(double x) { return 0.5 * erfc(-0.70710678118654752440 * x); }
__JE float normcdff(float x) { return 0.5f * erfcf(-0.70710678f * x); }
__JE double erfcx(double x) { return exp(x * x) * erfc(x); }
__JE float erfcxf(float x) { return (float)erfcx((double)x); }

// A rational start, good to 2e-3, then Halley's method, whose error is cubed in each of the steps. Where `f` is small,
// as in the tails, the equation is solved for the complement, which does not cancel.
__JE double __je_inverse_erfc(double y) {
  double u = y < 1.0 ? y : 2.0 - y;
  double t = sqrt(-2.0 * log(0.5 * u));
  double x = -0.70710678118654752440 * ((2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)) - t);
  for (int i = 0; i < 3; i++) {
    double error = erfc(x) - u;
    x += error / (1.12837916709551257390 * exp(-x * x) - x * error);
  }
  return y < 1.0 ? x : -x;
}
__JE double erfcinv(double y) { return __je_inverse_erfc(y); }
__JE float erfcinvf(float y) { return (float)__je_inverse_erfc((double)y); }
__JE double erfinv(double x) {
  if (fabs(x) > 0.5) return x < 0 ? -__je_inverse_erfc(1.0 + x) : __je_inverse_erfc(1.0 - x);
  double y = 0.88622692545275801365 * x;
  for (int i = 0; i < 4; i++) {
    double error = erf(y) - x;
    y -= error / (1.12837916709551257390 * exp(-y * y) + y * error);
  }
  return y;
}
__JE float erfinvf(float x) { return (float)erfinv((double)x); }
__JE float erfinv(float x) { return erfinvf(x); }
__JE double normcdfinv(double p) { return -1.41421356237309504880 * __je_inverse_erfc(2.0 * p); }
__JE float normcdfinvf(float p) { return (float)normcdfinv((double)p); }
__JE double cyl_bessel_i0(double x) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 500 && term > 1e-17 * sum; k++) sum += term *= 0.25 * x * x / ((double)k * k);
  return sum;
}

__JE double cyl_bessel_i1(double x) {
  double term = 0.5 * x, sum = term;
  for (int k = 1; k < 500 && fabs(term) > 1e-17 * fabs(sum); k++) sum += term *= 0.25 * x * x / (k * (k + 1.0));
  return sum;
}
__JE float cyl_bessel_i0f(float x) { return (float)cyl_bessel_i0((double)x); }
__JE float cyl_bessel_i1f(float x) { return (float)cyl_bessel_i1((double)x); }
__JE float rcbrt(float x) { return rcbrtf(x); }
__JE float rhypot(float x, float y) { return rhypotf(x, y); }
__JE float sinpi(float x) { return sinpif(x); }
__JE float cospi(float x) { return cospif(x); }
__JE float normcdf(float x) { return normcdff(x); }
__JE float normcdfinv(float p) { return normcdfinvf(p); }
__JE float erfcx(float x) { return erfcxf(x); }
__JE float erfcinv(float y) { return erfcinvf(y); }

// ---- intrinsics: the fast ones are as exact as the others here

__JE float __sinf(float x) { return sinf(x); }
__JE float __cosf(float x) { return cosf(x); }
__JE float __tanf(float x) { return tanf(x); }
__JE void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
__JE float __expf(float x) { return expf(x); }
__JE float __exp10f(float x) { return exp10f(x); }
__JE float __logf(float x) { return logf(x); }
__JE float __log2f(float x) { return log2f(x); }
__JE float __log10f(float x) { return log10f(x); }
__JE float __powf(float x, float y) { return powf(x, y); }
__JE float __fdividef(float x, float y) { return x / y; }
__JE double fdivide(double x, double y) { return x / y; }
__JE float fdivide(float x, float y) { return x / y; }
__JE float fdividef(float x, float y) { return x / y; }
__JE float __saturatef(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }
__JE float __fadd_rn(float x, float y) { return x + y; }
__JE float __fsub_rn(float x, float y) { return x - y; }
__JE float __fmul_rn(float x, float y) { return x * y; }
__JE float __fdiv_rn(float x, float y) { return x / y; }
__JE float __frcp_rn(float x) { return 1.0f / x; }
__JE float __fsqrt_rn(float x) { return sqrtf(x); }
__JE float __frsqrt_rn(float x) { return rsqrtf(x); }
__JE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
__JE double __dadd_rn(double x, double y) { return x + y; }
__JE double __dsub_rn(double x, double y) { return x - y; }
__JE double __dmul_rn(double x, double y) { return x * y; }
__JE double __ddiv_rn(double x, double y) { return x / y; }
__JE double __drcp_rn(double x) { return 1.0 / x; }
__JE double __dsqrt_rn(double x) { return sqrt(x); }
__JE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

namespace std {
using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh; using ::cbrt;
using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2;
using ::expm1; using ::fabs; using ::abs; using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin;
using ::fmod; using ::frexp; using ::hypot; using ::ilogb; using ::isfinite; using ::isinf; using ::isnan; using ::ldexp;
using ::lgamma; using ::llrint; using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb;
using ::lrint; using ::lround; using ::modf; using ::nearbyint; using ::nextafter; using ::pow; using ::remainder;
using ::rint; using ::round; using ::scalbln; using ::scalbn; using ::signbit; using ::sin; using ::sinh; using ::sqrt;
using ::tan; using ::tanh; using ::tgamma; using ::trunc; using ::min; using ::max;
}
