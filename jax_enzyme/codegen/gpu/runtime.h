// What device code calls by the names of C's library, for every kind of GPU: compiled behind the source of the device's own
// functions, which has `DEVICE` (a function of the device) and `MEET` (one in which threads meet), the mathematics of its
// library under NVIDIA's names (`__nv_sin`), `__je_lane` and the shuffles. A kernel that defines one of them keeps its own.

// ---- mathematics

#define UNARY_OF(T, name)      \
  DEVICE T __nv_##name(T);     \
  DEVICE T name(T x) { return __nv_##name(x); }
#define UNARY(name) UNARY_OF(double, name) UNARY_OF(float, name##f)
UNARY(sin) UNARY(cos) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh)
UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(exp) UNARY(exp2) UNARY(exp10) UNARY(expm1) UNARY(log) UNARY(log2)
UNARY(log10) UNARY(log1p) UNARY(logb) UNARY(cbrt) UNARY(erf) UNARY(erfc) UNARY(tgamma) UNARY(lgamma)
UNARY(j0) UNARY(j1) UNARY(y0) UNARY(y1) UNARY(tan) UNARY(round) UNARY(nearbyint) UNARY(rint)

#define BUILTIN(name)                                          \
  DEVICE double name(double x) { return __builtin_##name(x); } \
  DEVICE float name##f(float x) { return __builtin_##name##f(x); }
BUILTIN(sqrt) BUILTIN(fabs) BUILTIN(floor) BUILTIN(ceil) BUILTIN(trunc)

#define BINARY_OF(T, U, name)       \
  DEVICE T __nv_##name(T, U);       \
  DEVICE T name(T x, U y) { return __nv_##name(x, y); }
#define BINARY(name) BINARY_OF(double, double, name) BINARY_OF(float, float, name##f)
BINARY(pow) BINARY(atan2) BINARY(hypot) BINARY(fmod) BINARY(remainder) BINARY(fmin) BINARY(fmax) BINARY(fdim)
BINARY(copysign) BINARY(nextafter)
BINARY_OF(double, int, ldexp) BINARY_OF(float, int, ldexpf) BINARY_OF(double, int, powi) BINARY_OF(float, int, powif)
DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

#define ORDER(T, name)              \
  DEVICE T __nv_##name(int, T);     \
  DEVICE T name(int n, T x) { return __nv_##name(n, x); }
ORDER(double, jn) ORDER(double, yn) ORDER(float, jnf) ORDER(float, ynf)

#define TO_INTEGER(T, U, name, function) \
  DEVICE T __nv_##function(U);           \
  DEVICE T name(U x) { return __nv_##function(x); }
TO_INTEGER(int, double, ilogb, ilogb)
TO_INTEGER(int, float, ilogbf, ilogbf)
TO_INTEGER(long long, double, llround, llround)
TO_INTEGER(long long, double, llrint, llrint)
TO_INTEGER(long long, float, llroundf, llroundf)
TO_INTEGER(long long, float, llrintf, llrintf)
DEVICE long lround(double x) { return llround(x); }
DEVICE long lrint(double x) { return llrint(x); }
DEVICE long lroundf(float x) { return llroundf(x); }
DEVICE long lrintf(float x) { return llrintf(x); }

DEVICE double __nv_frexp(double, int *);
DEVICE float __nv_frexpf(float, int *);
DEVICE double __nv_modf(double, double *);
DEVICE float __nv_modff(float, float *);
PLAIN double frexp(double x, int *e) { return __nv_frexp(x, e); }
PLAIN float frexpf(float x, int *e) { return __nv_frexpf(x, e); }
PLAIN double modf(double x, double *i) { return __nv_modf(x, i); }
PLAIN float modff(float x, float *i) { return __nv_modff(x, i); }

// The sum over the lanes of the mask, which are the first ones of the warp, or all: what every one of them gets.
#define SUM(name, type)                                                                                                \
  MEET type __je_shuffle_sum_##name(unsigned mask, type value, int) {                                                  \
    const int lane = (int)__je_lane();                                                                                 \
    if (mask == ~0u) {                                                                                                 \
      _Pragma("unroll") for (int by = 16; by > 0; by /= 2) value += __je_shuffle_##name(mask, value, lane ^ by);       \
      return value;                                                                                                    \
    }                                                                                                                  \
    _Pragma("unroll") for (int by = 16; by > 0; by /= 2) {                                                             \
      const type other = __je_shuffle_##name(mask, value, (lane + by) & 31);                                           \
      value += lane + by < 32 && (mask >> (lane + by) & 1) ? other : 0;                                                \
    }                                                                                                                  \
    return __je_shuffle_##name(mask, value, 0);                                                                        \
  }
SUM(f32, float)
SUM(f64, double)
