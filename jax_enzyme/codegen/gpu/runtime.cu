// What device code calls by the names of C's library and of our header, over libdevice and NVVM's intrinsics. Compiled
// behind `jax_enzyme_cuda.h`, which declares these functions; a kernel that defines one of them keeps its own.

#define DEVICE extern "C" __attribute__((device, nothrow))

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

#define PLAIN extern "C" __attribute__((device))
DEVICE double __nv_frexp(double, int *);
DEVICE float __nv_frexpf(float, int *);
DEVICE double __nv_modf(double, double *);
DEVICE float __nv_modff(float, float *);
PLAIN double frexp(double x, int *e) { return __nv_frexp(x, e); }
PLAIN float frexpf(float x, int *e) { return __nv_frexpf(x, e); }
PLAIN double modf(double x, double *i) { return __nv_modf(x, i); }
PLAIN float modff(float x, float *i) { return __nv_modff(x, i); }

// ---- threads that meet

#define MEET extern "C" __attribute__((device, convergent, nothrow))
MEET int __je_barrier_count(int predicate) { return __nvvm_bar0_popc(predicate); }
MEET int __je_barrier_and(int predicate) { return __nvvm_bar0_and(predicate); }
MEET int __je_barrier_or(int predicate) { return __nvvm_bar0_or(predicate); }
MEET void __je_warp_sync(unsigned mask) { __nvvm_bar_warp_sync(mask); }
MEET unsigned __je_ballot(unsigned mask, int predicate) { return __nvvm_vote_ballot_sync(mask, predicate != 0); }
MEET int __je_any(unsigned mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate != 0); }
MEET int __je_all(unsigned mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate != 0); }
MEET unsigned __je_active_mask() {
  unsigned mask;
  __asm__ volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
DEVICE unsigned __je_lane() { return __nvvm_read_ptx_sreg_laneid(); }
MEET int __je_shuffle_i32(unsigned mask, int value, int source) {
  return __nvvm_shfl_sync_idx_i32(mask, value, source, 31);
}
MEET float __je_shuffle_f32(unsigned mask, float value, int source) {
  return __nvvm_shfl_sync_idx_f32(mask, value, source, 31);
}
MEET long long __je_shuffle_i64(unsigned mask, long long value, int source) {
  unsigned low = __je_shuffle_i32(mask, (int)value, source);
  int high = __je_shuffle_i32(mask, (int)(value >> 32), source);
  return (long long)high << 32 | low;
}
MEET double __je_shuffle_f64(unsigned mask, double value, int source) {
  return __longlong_as_double(__je_shuffle_i64(mask, __double_as_longlong(value), source));
}

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

// ---- assertions

extern "C" __attribute__((device, noreturn)) void __assertfail(const char *, const char *, unsigned, const char *, __SIZE_TYPE__);
PLAIN void __assert_fail(const char *condition, const char *file, unsigned line, const char *function) {
  __assertfail(condition, file, line, function, 1);
}
