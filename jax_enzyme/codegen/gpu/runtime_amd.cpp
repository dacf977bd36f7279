// What device code means on AMD's GPUs, over LLVM's builtins: NVVM's registers, barriers and votes under their names (see
// `amd.py`), those of our header, and libdevice's mathematics over ROCm's `ocml`. In front of `runtime.h`.
//
// A warp has 32 threads on every device: a wavefront of 64 holds two of them, whose lanes are the halves of its own.
// Lanes that a shuffle or vote names have to come to it together, as HIP demands.

#define DEVICE extern "C" __attribute__((nothrow))
#define PLAIN extern "C"
#define MEET extern "C" __attribute__((convergent, nothrow))

// ---- where a thread is

#define REGISTER(name, axis, builtin) \
  DEVICE unsigned name##_##axis() __asm__("nvvm.read.ptx.sreg." #name "." #axis); \
  DEVICE unsigned name##_##axis() { return builtin##_##axis(); }
#define REGISTERS(name, builtin) REGISTER(name, x, builtin) REGISTER(name, y, builtin) REGISTER(name, z, builtin)
REGISTERS(tid, __builtin_amdgcn_workitem_id)
REGISTERS(ctaid, __builtin_amdgcn_workgroup_id)

static unsigned lane_of_wave() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
DEVICE unsigned __je_lane() { return lane_of_wave() & 31; }
DEVICE unsigned laneid() __asm__("nvvm.read.ptx.sreg.laneid");
DEVICE unsigned laneid() { return __je_lane(); }
DEVICE long long clock64() __asm__("nvvm.read.ptx.sreg.clock64");
DEVICE long long clock64() { return (long long)__builtin_readcyclecounter(); }
DEVICE int clock32() __asm__("nvvm.read.ptx.sreg.clock");
DEVICE int clock32() { return (int)__builtin_readcyclecounter(); }

// ---- threads that meet

DEVICE void fence_block() __asm__("nvvm.membar.cta");
DEVICE void fence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
DEVICE void fence_device() __asm__("nvvm.membar.gl");
DEVICE void fence_device() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
DEVICE void fence_system() __asm__("nvvm.membar.sys");
DEVICE void fence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

__attribute__((convergent)) static void meet() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
MEET void barrier(int) __asm__("nvvm.barrier.cta.sync.aligned.all");
MEET void barrier(int) { meet(); }
MEET void barrier_of_some(int) __asm__("nvvm.barrier.cta.sync.all");
MEET void barrier_of_some(int) { meet(); }
MEET void barrier_by_its_older_name() __asm__("nvvm.barrier0");
MEET void barrier_by_its_older_name() { meet(); }

// For how many threads of the block the predicate holds.
__attribute__((address_space(3), loader_uninitialized)) static int g_held;
MEET int __je_barrier_count(int predicate) {
  meet();
  if ((__builtin_amdgcn_workitem_id_x() | __builtin_amdgcn_workitem_id_y() | __builtin_amdgcn_workitem_id_z()) == 0) {
    g_held = 0;
  }
  meet();
  if (predicate) __scoped_atomic_fetch_add(&g_held, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  meet();
  return g_held;
}
MEET int __je_barrier_and(int predicate) { return __je_barrier_count(!predicate) == 0; }
MEET int __je_barrier_or(int predicate) { return __je_barrier_count(predicate) != 0; }

MEET void __je_warp_sync(unsigned) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
__attribute__((convergent)) static unsigned held(bool predicate) {
  return (unsigned)(__builtin_amdgcn_ballot_w64(predicate) >> (lane_of_wave() & 32));
}
MEET unsigned __je_ballot(unsigned mask, int predicate) { return held(predicate != 0) & mask; }
MEET int __je_any(unsigned mask, int predicate) { return (held(predicate != 0) & mask) != 0; }
MEET int __je_all(unsigned mask, int predicate) { return (held(predicate == 0) & mask) == 0; }
MEET unsigned __je_active_mask() { return held(true); }

MEET void warp_sync(unsigned mask) __asm__("nvvm.bar.warp.sync");
MEET void warp_sync(unsigned mask) { __je_warp_sync(mask); }
MEET unsigned ballot(unsigned mask, bool predicate) __asm__("nvvm.vote.ballot.sync");
MEET unsigned ballot(unsigned mask, bool predicate) { return __je_ballot(mask, predicate); }
MEET bool any(unsigned mask, bool predicate) __asm__("nvvm.vote.any.sync");
MEET bool any(unsigned mask, bool predicate) { return __je_any(mask, predicate); }
MEET bool all(unsigned mask, bool predicate) __asm__("nvvm.vote.all.sync");
MEET bool all(unsigned mask, bool predicate) { return __je_all(mask, predicate); }

MEET int __je_shuffle_i32(unsigned, int value, int source) {
  return __builtin_amdgcn_ds_bpermute((int)((lane_of_wave() & 32) | (source & 31)) * 4, value);
}
MEET float __je_shuffle_f32(unsigned mask, float value, int source) {
  return __builtin_bit_cast(float, __je_shuffle_i32(mask, __builtin_bit_cast(int, value), source));
}
MEET long long __je_shuffle_i64(unsigned mask, long long value, int source) {
  const unsigned low = (unsigned)__je_shuffle_i32(mask, (int)value, source);
  const long long high = __je_shuffle_i32(mask, (int)(value >> 32), source);
  return (long long)((unsigned long long)high << 32 | low);
}
MEET double __je_shuffle_f64(unsigned mask, double value, int source) {
  return __builtin_bit_cast(double, __je_shuffle_i64(mask, __builtin_bit_cast(long long, value), source));
}

// ---- assertions

PLAIN __attribute__((noreturn)) void __assert_fail(const char *, const char *, unsigned, const char *) {
  __builtin_trap();
}

// ---- mathematics: what LLVM has instructions for, and ocml

#define OCML_UNARY(name)                              \
  DEVICE double __ocml_##name##_f64(double);          \
  DEVICE float __ocml_##name##_f32(float);            \
  DEVICE double __nv_##name(double x) { return __ocml_##name##_f64(x); } \
  DEVICE float __nv_##name##f(float x) { return __ocml_##name##_f32(x); }
OCML_UNARY(sin) OCML_UNARY(cos) OCML_UNARY(tan) OCML_UNARY(asin) OCML_UNARY(acos) OCML_UNARY(atan) OCML_UNARY(sinh)
OCML_UNARY(cosh) OCML_UNARY(tanh) OCML_UNARY(asinh) OCML_UNARY(acosh) OCML_UNARY(atanh) OCML_UNARY(exp) OCML_UNARY(exp2)
OCML_UNARY(exp10) OCML_UNARY(expm1) OCML_UNARY(log) OCML_UNARY(log2) OCML_UNARY(log10) OCML_UNARY(log1p)
OCML_UNARY(logb) OCML_UNARY(cbrt) OCML_UNARY(erf) OCML_UNARY(erfc) OCML_UNARY(tgamma) OCML_UNARY(lgamma)
OCML_UNARY(j0) OCML_UNARY(j1) OCML_UNARY(y0) OCML_UNARY(y1)

#define OCML_BINARY(name)                            \
  DEVICE double __ocml_##name##_f64(double, double); \
  DEVICE float __ocml_##name##_f32(float, float);    \
  DEVICE double __nv_##name(double x, double y) { return __ocml_##name##_f64(x, y); } \
  DEVICE float __nv_##name##f(float x, float y) { return __ocml_##name##_f32(x, y); }
OCML_BINARY(pow) OCML_BINARY(atan2) OCML_BINARY(hypot) OCML_BINARY(fmod) OCML_BINARY(remainder) OCML_BINARY(fdim)
OCML_BINARY(nextafter)

#define OCML_INTEGERS(T, suffix, f)                                                              \
  DEVICE T __ocml_pown_##suffix(T, int);                                                         \
  DEVICE T __ocml_ldexp_##suffix(T, int);                                                        \
  DEVICE int __ocml_ilogb_##suffix(T);                                                           \
  DEVICE T __ocml_frexp_##suffix(T, __attribute__((address_space(5))) int *);                    \
  DEVICE T __nv_powi##f(T x, int n) { return __ocml_pown_##suffix(x, n); }                       \
  DEVICE T __nv_ldexp##f(T x, int n) { return __ocml_ldexp_##suffix(x, n); }                     \
  DEVICE int __nv_ilogb##f(T x) { return __ocml_ilogb_##suffix(x); }                             \
  DEVICE long long __nv_llround##f(T x) { return (long long)__builtin_round##f(x); }             \
  DEVICE long long __nv_llrint##f(T x) { return (long long)__builtin_rint##f(x); }               \
  DEVICE T __nv_frexp##f(T x, int *e) {                                                           \
    int exponent;                                                                                \
    const T fraction = __ocml_frexp_##suffix(x, (__attribute__((address_space(5))) int *)&exponent); \
    *e = exponent;                                                                               \
    return fraction;                                                                             \
  }                                                                                              \
  DEVICE T __nv_modf##f(T x, T *whole) {                                                          \
    *whole = __builtin_trunc##f(x);                                                              \
    return __builtin_copysign##f(__builtin_isinf(x) ? 0 : x - *whole, x);                        \
  }
OCML_INTEGERS(double, f64, ) OCML_INTEGERS(float, f32, f)

#define LLVM_UNARY(name)                                              \
  DEVICE double __nv_##name(double x) { return __builtin_##name(x); } \
  DEVICE float __nv_##name##f(float x) { return __builtin_##name##f(x); }
LLVM_UNARY(round) LLVM_UNARY(nearbyint) LLVM_UNARY(rint)
#define LLVM_BINARY(name)                                                          \
  DEVICE double __nv_##name(double x, double y) { return __builtin_##name(x, y); } \
  DEVICE float __nv_##name##f(float x, float y) { return __builtin_##name##f(x, y); }
LLVM_BINARY(fmin) LLVM_BINARY(fmax) LLVM_BINARY(copysign)

// What ocml asks how to compile: as IEEE 754 has it.
#if defined(__gfx942__)
#define ISA_VERSION 9402
#elif defined(__gfx90a__)
#define ISA_VERSION 9010
#endif
#define ASKED(type, name, value) extern "C" const __attribute__((address_space(4))) type __oclc_##name = value;
ASKED(bool, finite_only_opt, false)
ASKED(bool, unsafe_math_opt, false)
ASKED(bool, daz_opt, false)
ASKED(bool, correctly_rounded_sqrt32, true)
ASKED(int, ISA_version, ISA_VERSION)

