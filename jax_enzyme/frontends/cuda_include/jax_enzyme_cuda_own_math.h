// CUDA's own mathematical functions, which host code may call as well, and intrinsics.
#pragma once

#define __JE_ORDER(T)                                     \
  __JE_BOTH constexpr T min(T x, T y) { return y < x ? y : x; }          \
  __JE_BOTH constexpr T max(T x, T y) { return x < y ? y : x; }
__JE_ORDER(int)
__JE_ORDER(unsigned)
__JE_ORDER(long)
__JE_ORDER(unsigned long)
__JE_ORDER(long long)
__JE_ORDER(unsigned long long)
#undef __JE_ORDER
#define __JE_ORDER(T)                                                   \
  __JE_BOTH constexpr unsigned T min(T x, unsigned T y) { return min((unsigned T)x, y); }   \
  __JE_BOTH constexpr unsigned T min(unsigned T x, T y) { return min(x, (unsigned T)y); }   \
  __JE_BOTH constexpr unsigned T max(T x, unsigned T y) { return max((unsigned T)x, y); }   \
  __JE_BOTH constexpr unsigned T max(unsigned T x, T y) { return max(x, (unsigned T)y); }
__JE_ORDER(int)
__JE_ORDER(long)
__JE_ORDER(long long)
#undef __JE_ORDER
__JE_BOTH constexpr unsigned umin(unsigned x, unsigned y) { return min(x, y); }
__JE_BOTH constexpr unsigned umax(unsigned x, unsigned y) { return max(x, y); }
__JE_BOTH constexpr long long llmin(long long x, long long y) { return min(x, y); }
__JE_BOTH constexpr long long llmax(long long x, long long y) { return max(x, y); }
__JE_BOTH constexpr unsigned long long ullmin(unsigned long long x, unsigned long long y) { return min(x, y); }
__JE_BOTH constexpr unsigned long long ullmax(unsigned long long x, unsigned long long y) { return max(x, y); }
__JE_BOTH float min(float x, float y) { return fminf(x, y); }
__JE_BOTH float max(float x, float y) { return fmaxf(x, y); }
__JE_BOTH double min(double x, double y) { return fmin(x, y); }
__JE_BOTH double max(double x, double y) { return fmax(x, y); }
__JE_BOTH double min(float x, double y) { return fmin((double)x, y); }
__JE_BOTH double min(double x, float y) { return fmin(x, (double)y); }
__JE_BOTH double max(float x, double y) { return fmax((double)x, y); }
__JE_BOTH double max(double x, float y) { return fmax(x, (double)y); }

// ---- CUDA's own

// C's library may declare these for the host (C23 names them, as glibc 2.42 does): a condition makes another overload of
// ours, which is preferred, on both sides.
#define __JE_OURS __attribute__((enable_if(true, "")))
__JE_BOTH double rsqrt(double x) __JE_OURS { return 1.0 / sqrt(x); }
__JE_BOTH float rsqrtf(float x) __JE_OURS { return 1.0f / sqrtf(x); }
__JE_BOTH float rsqrt(float x) __JE_OURS { return rsqrtf(x); }
__JE_BOTH double rcbrt(double x) { return 1.0 / cbrt(x); }
__JE_BOTH float rcbrtf(float x) { return 1.0f / cbrtf(x); }
__JE_BOTH double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
__JE_BOTH float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
__JE_BOTH double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
__JE_BOTH float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
__JE_BOTH double norm4d(double a, double b, double c, double d) { return sqrt(a * a + b * b + c * c + d * d); }
__JE_BOTH float norm4df(float a, float b, float c, float d) { return sqrtf(a * a + b * b + c * c + d * d); }
__JE_BOTH double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
__JE_BOTH float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
__JE_BOTH double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
__JE_BOTH float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
__JE_BOTH double norm(int n, const double *p) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) sum += p[i] * p[i];
  return sqrt(sum);
}
__JE_BOTH float normf(int n, const float *p) {
  float sum = 0.0f;
  for (int i = 0; i < n; i++) sum += p[i] * p[i];
  return sqrtf(sum);
}
__JE_BOTH double rnorm(int n, const double *p) { return 1.0 / norm(n, p); }
__JE_BOTH float rnormf(int n, const float *p) { return 1.0f / normf(n, p); }
// sin and cos of multiples of pi / 2, and of what is left of them: exact where they are 0, 1 and -1.
template <class T> __JE_BOTH T __je_quarter_turns(T count, T s, T c) {
  T quarter = count - 4 * floor(count / 4), value = quarter == 1 || quarter == 3 ? c : s;
  return quarter >= 2 ? 0 - value : value;
}
__JE_BOTH double sinpi(double x) __JE_OURS {
  double n = rint(2.0 * x), r = 3.14159265358979323846 * (x - 0.5 * n);
  return __je_quarter_turns(n, sin(r), cos(r));
}
__JE_BOTH double cospi(double x) __JE_OURS {
  double n = rint(2.0 * x), r = 3.14159265358979323846 * (x - 0.5 * n);
  return __je_quarter_turns(n + 1.0, sin(r), cos(r));
}
__JE_BOTH float sinpif(float x) __JE_OURS {
  float n = rintf(2.0f * x), r = 3.14159265f * (x - 0.5f * n);
  return __je_quarter_turns(n, sinf(r), cosf(r));
}
__JE_BOTH float cospif(float x) __JE_OURS {
  float n = rintf(2.0f * x), r = 3.14159265f * (x - 0.5f * n);
  return __je_quarter_turns(n + 1.0f, sinf(r), cosf(r));
}
__JE_BOTH void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
__JE_BOTH void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
__JE_BOTH double normcdf(double x) { return 0.5 * erfc(-0.70710678118654752440 * x); }
__JE_BOTH float normcdff(float x) { return 0.5f * erfcf(-0.70710678f * x); }
__JE_BOTH double erfcx(double x) { return exp(x * x) * erfc(x); }
__JE_BOTH float erfcxf(float x) { return (float)erfcx((double)x); }

// A rational start, good to 2e-3, then Halley's method, whose error is cubed in each of the steps. Where `f` is small,
// as in the tails, the equation is solved for the complement, which does not cancel.
__JE_BOTH double __je_inverse_erfc(double y) {
  double u = y < 1.0 ? y : 2.0 - y;
  double t = sqrt(-2.0 * log(0.5 * u));
  double x = -0.70710678118654752440 * ((2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)) - t);
  for (int i = 0; i < 3; i++) {
    double error = erfc(x) - u;
    x += error / (1.12837916709551257390 * exp(-x * x) - x * error);
  }
  return y < 1.0 ? x : -x;
}
__JE_BOTH double erfcinv(double y) { return __je_inverse_erfc(y); }
__JE_BOTH float erfcinvf(float y) { return (float)__je_inverse_erfc((double)y); }
__JE_BOTH double erfinv(double x) {
  if (fabs(x) > 0.5) return x < 0 ? -__je_inverse_erfc(1.0 + x) : __je_inverse_erfc(1.0 - x);
  double y = 0.88622692545275801365 * x;
  for (int i = 0; i < 4; i++) {
    double error = erf(y) - x;
    y -= error / (1.12837916709551257390 * exp(-y * y) + y * error);
  }
  return y;
}
__JE_BOTH float erfinvf(float x) { return (float)erfinv((double)x); }
__JE_BOTH float erfinv(float x) { return erfinvf(x); }
__JE_BOTH double normcdfinv(double p) { return -1.41421356237309504880 * __je_inverse_erfc(2.0 * p); }
__JE_BOTH float normcdfinvf(float p) { return (float)normcdfinv((double)p); }
__JE_BOTH double cyl_bessel_i0(double x) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 500 && term > 1e-17 * sum; k++) sum += term *= 0.25 * x * x / ((double)k * k);
  return sum;
}

__JE_BOTH double cyl_bessel_i1(double x) {
  double term = 0.5 * x, sum = term;
  for (int k = 1; k < 500 && fabs(term) > 1e-17 * fabs(sum); k++) sum += term *= 0.25 * x * x / (k * (k + 1.0));
  return sum;
}
__JE_BOTH float cyl_bessel_i0f(float x) { return (float)cyl_bessel_i0((double)x); }
__JE_BOTH float cyl_bessel_i1f(float x) { return (float)cyl_bessel_i1((double)x); }
__JE_BOTH float rcbrt(float x) { return rcbrtf(x); }
__JE_BOTH float rhypot(float x, float y) { return rhypotf(x, y); }
__JE_BOTH float sinpi(float x) __JE_OURS { return sinpif(x); }
__JE_BOTH float cospi(float x) __JE_OURS { return cospif(x); }
#undef __JE_OURS
__JE_BOTH float normcdf(float x) { return normcdff(x); }
__JE_BOTH float normcdfinv(float p) { return normcdfinvf(p); }
__JE_BOTH float erfcx(float x) { return erfcxf(x); }
__JE_BOTH float erfcinv(float y) { return erfcinvf(y); }

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
__JE float __saturatef(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }
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
