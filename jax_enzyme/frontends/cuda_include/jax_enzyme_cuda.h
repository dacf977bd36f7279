// What a CUDA source may use, without the CUDA toolkit: included in front of each, for its kernels and its host
// functions alike.
//
// Functions named `__je_...` are declared and never defined: the lowering of the platform that a kernel runs on knows
// what they mean. Mathematical functions have the names of C's library for the same reason.
#pragma once

#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __managed__ __attribute__((device))
#define CUDA_VERSION 12090
#define __CUDACC__ 1
#define __CUDA_ARCH_FEAT_NONE 1
#define __assume(condition) __builtin_assume(condition)

#define __JE static __attribute__((device, always_inline, unused)) inline
#define __JE_BOTH static __attribute__((host, device, always_inline, unused)) inline
#define __JE_EXTERN extern "C" __attribute__((device))
#define __JE_PURE extern "C" __attribute__((device, const, nothrow))

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;

// ---- vectors

#define __JE_VECTORS(T, name)                                                                       \
  struct name##1 { T x; };                                                                          \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                                \
  struct name##3 { T x, y, z; };                                                                    \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };                \
  __JE_BOTH name##1 make_##name##1(T x) { return {x}; }                                                  \
  __JE_BOTH name##2 make_##name##2(T x, T y) { return {x, y}; }                                          \
  __JE_BOTH name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                  \
  __JE_BOTH name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
__JE_VECTORS(signed char, char)
__JE_VECTORS(unsigned char, uchar)
__JE_VECTORS(short, short)
__JE_VECTORS(unsigned short, ushort)
__JE_VECTORS(int, int)
__JE_VECTORS(unsigned, uint)
__JE_VECTORS(long, long)
__JE_VECTORS(unsigned long, ulong)
__JE_VECTORS(long long, longlong)
__JE_VECTORS(unsigned long long, ulonglong)
__JE_VECTORS(float, float)
__JE_VECTORS(double, double)
#undef __JE_VECTORS

struct dim3 {
  unsigned x, y, z;
  __attribute__((host, device)) constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  __attribute__((host, device)) constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  // A variable that says where a thread is.
  template <class P, class = typename P::__je_place> __attribute__((device)) dim3(P p) : x(p.x), y(p.y), z(p.z) {}
  __attribute__((host, device)) constexpr operator uint3() const { return {x, y, z}; }
};

// ---- where a thread is: variables, so that host code may have others of these names

#define __JE_AXIS(register, axis)                                                                                     \
  __declspec(property(get = __je_##axis)) unsigned axis;                                                              \
  __attribute__((device, always_inline)) static unsigned __je_##axis() {                                              \
    return (unsigned)__nvvm_read_ptx_sreg_##register##_##axis();                                                      \
  }
#define __JE_PLACE(name, register)                                                                                    \
  struct __je_##name {                                                                                                \
    __JE_AXIS(register, x)                                                                                            \
    __JE_AXIS(register, y)                                                                                            \
    __JE_AXIS(register, z)                                                                                            \
    __attribute__((device, always_inline)) operator uint3() const { return {x, y, z}; }                               \
    typedef void __je_place;                                                                                          \
  };                                                                                                                  \
  extern const __attribute__((device, weak)) __je_##name name;
__JE_PLACE(threadIdx, tid)
__JE_PLACE(blockIdx, ctaid)
__JE_PLACE(blockDim, ntid)
__JE_PLACE(gridDim, nctaid)
#undef __JE_PLACE
#undef __JE_AXIS
__attribute__((device)) const int warpSize = 32;

// ---- synchronisation

#define __JE_CONVERGENT extern "C" __attribute__((device, convergent, nothrow))
__JE_CONVERGENT int __je_barrier_count(int predicate);
__JE_CONVERGENT int __je_barrier_and(int predicate);
__JE_CONVERGENT int __je_barrier_or(int predicate);
__JE int __syncthreads_count(int predicate) { return __je_barrier_count(predicate); }
__JE int __syncthreads_and(int predicate) { return __je_barrier_and(predicate); }
__JE int __syncthreads_or(int predicate) { return __je_barrier_or(predicate); }
__JE void __threadfence() { __nvvm_membar_gl(); }
__JE void __threadfence_block() { __nvvm_membar_cta(); }
__JE void __threadfence_system() { __nvvm_membar_sys(); }

__JE_CONVERGENT void __je_warp_sync(unsigned mask);
__JE_CONVERGENT unsigned __je_ballot(unsigned mask, int predicate);
__JE_CONVERGENT int __je_any(unsigned mask, int predicate);
__JE_CONVERGENT int __je_all(unsigned mask, int predicate);
__JE_CONVERGENT unsigned __je_active_mask();
__JE void __syncwarp(unsigned mask = 0xffffffffu) { __je_warp_sync(mask); }
__JE unsigned __ballot_sync(unsigned mask, int predicate) { return __je_ballot(mask, predicate); }
__JE int __any_sync(unsigned mask, int predicate) { return __je_any(mask, predicate); }
__JE int __all_sync(unsigned mask, int predicate) { return __je_all(mask, predicate); }
__JE unsigned __activemask() { return __je_active_mask(); }

// The lane that a shuffle reads from is computed here: a lane outside its section reads its own value.
__JE_PURE unsigned __je_lane();
__JE_CONVERGENT int __je_shuffle_i32(unsigned mask, int value, int source);
__JE_CONVERGENT long long __je_shuffle_i64(unsigned mask, long long value, int source);
__JE_CONVERGENT float __je_shuffle_f32(unsigned mask, float value, int source);
__JE_CONVERGENT double __je_shuffle_f64(unsigned mask, double value, int source);
__JE int __je_move(unsigned m, int v, int s) { return __je_shuffle_i32(m, v, s); }
__JE unsigned __je_move(unsigned m, unsigned v, int s) { return (unsigned)__je_shuffle_i32(m, (int)v, s); }
__JE long long __je_move(unsigned m, long long v, int s) { return __je_shuffle_i64(m, v, s); }
__JE unsigned long long __je_move(unsigned m, unsigned long long v, int s) {
  return (unsigned long long)__je_shuffle_i64(m, (long long)v, s);
}
__JE long __je_move(unsigned m, long v, int s) { return (long)__je_shuffle_i64(m, v, s); }
__JE unsigned long __je_move(unsigned m, unsigned long v, int s) { return (unsigned long)__je_shuffle_i64(m, v, s); }
__JE float __je_move(unsigned m, float v, int s) { return __je_shuffle_f32(m, v, s); }
__JE double __je_move(unsigned m, double v, int s) { return __je_shuffle_f64(m, v, s); }
__JE _Float16 __je_move(unsigned m, _Float16 v, int s) { return (_Float16)__je_shuffle_f32(m, (float)v, s); }
__JE __bf16 __je_move(unsigned m, __bf16 v, int s) { return (__bf16)__je_shuffle_f32(m, (float)v, s); }

template <class T> __JE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  int self = __je_lane();
  return __je_move(mask, value, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> __JE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int self = __je_lane(), source = self - (int)delta;
  return __je_move(mask, value, source < (self & ~(width - 1)) ? self : source);
}
template <class T> __JE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int self = __je_lane();
  return __je_move(mask, value, (self & (width - 1)) + (int)delta >= width ? self : self + (int)delta);
}
template <class T> __JE T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  int self = __je_lane(), source = self ^ bits;
  return __je_move(mask, value, source >= ((self & ~(width - 1)) + width) ? self : source);
}

// ---- atomics: relaxed, as CUDA's are

// Those of a block and of the whole system are those of the device, which is between them.
#define __JE_SCOPES(T, name)                                                                                           \
  __JE T name##_block(T *p, T v) { return name(p, v); }                                                                \
  __JE T name##_system(T *p, T v) { return name(p, v); }
#define __JE_ATOMIC(T)                                                                                                 \
  __JE T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicExch(T *p, T v) {                                                                                       \
    T old;                                                                                                             \
    __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);                                                                  \
    return old;                                                                                                        \
  }                                                                                                                    \
  __JE_SCOPES(T, atomicAdd)                                                                                            \
  __JE_SCOPES(T, atomicExch)
__JE_ATOMIC(int)
__JE_ATOMIC(unsigned)
__JE_ATOMIC(unsigned long long)
__JE_ATOMIC(float)
__JE_ATOMIC(double)
#undef __JE_ATOMIC
// Each number is added atomically, not all of them at once.
__JE float2 atomicAdd(float2 *p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
__JE float4 atomicAdd(float4 *p, float4 v) {
  return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}
#define __JE_ATOMIC(T)                                                                                                 \
  __JE T atomicSub(T *p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicMax(T *p, T v) { return __atomic_fetch_max(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicMin(T *p, T v) { return __atomic_fetch_min(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }                                     \
  __JE T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }                                   \
  __JE T atomicCAS(T *p, T expected, T v) {                                                                            \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                           \
    return expected;                                                                                                   \
  }                                                                                                                    \
  __JE T atomicCAS_block(T *p, T expected, T v) { return atomicCAS(p, expected, v); }                                  \
  __JE T atomicCAS_system(T *p, T expected, T v) { return atomicCAS(p, expected, v); }                                 \
  __JE_SCOPES(T, atomicSub)                                                                                            \
  __JE_SCOPES(T, atomicMax)                                                                                            \
  __JE_SCOPES(T, atomicMin)                                                                                            \
  __JE_SCOPES(T, atomicAnd)                                                                                            \
  __JE_SCOPES(T, atomicOr)                                                                                             \
  __JE_SCOPES(T, atomicXor)
__JE_ATOMIC(int)
__JE_ATOMIC(unsigned)
__JE_ATOMIC(long long)
__JE_ATOMIC(unsigned long long)
#undef __JE_ATOMIC
#undef __JE_SCOPES
__JE unsigned short atomicCAS(unsigned short *p, unsigned short expected, unsigned short v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
#include "jax_enzyme_cuda_atomic.h"
__JE unsigned atomicInc(unsigned *p, unsigned limit) { return __nvvm_atom_inc_gen_ui(p, limit); }
__JE unsigned atomicDec(unsigned *p, unsigned limit) { return __nvvm_atom_dec_gen_ui(p, limit); }

// Addresses as inline PTX takes them.
__JE size_t __cvta_generic_to_shared(const void *p) { return (size_t)(const __attribute__((address_space(3))) void *)p; }
__JE size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
template <class T> __JE T __ldg(const T *p) { return *p; }
template <class T> __JE T __ldcg(const T *p) { return *p; }
template <class T> __JE T __ldca(const T *p) { return *p; }
template <class T> __JE T __ldcs(const T *p) { return *p; }
template <class T> __JE T __ldlu(const T *p) { return *p; }
template <class T> __JE T __ldcv(const T *p) { return *p; }
template <class T> __JE void __stcg(T *p, T v) { *p = v; }
template <class T> __JE void __stcs(T *p, T v) { *p = v; }
template <class T> __JE void __stwb(T *p, T v) { *p = v; }
template <class T> __JE void __stwt(T *p, T v) { *p = v; }

// What clang knows by these names are the host's.
__JE void *memcpy(void *to, const void *from, size_t size) { return __builtin_memcpy(to, from, size); }
__JE void *memmove(void *to, const void *from, size_t size) { return __builtin_memmove(to, from, size); }
__JE void *memset(void *to, int byte, size_t size) { return __builtin_memset(to, byte, size); }

extern "C" __attribute__((device)) int printf(const char *, ...);
extern "C" __attribute__((device, noreturn)) void __assert_fail(const char *, const char *, unsigned, const char *);
extern "C" __attribute__((device)) void *malloc(size_t);
extern "C" __attribute__((device)) void free(void *);
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
__attribute__((device)) inline void *operator new(size_t size) { return malloc(size); }
__attribute__((device)) inline void *operator new[](size_t size) { return malloc(size); }
__attribute__((device)) inline void operator delete(void *p) noexcept { free(p); }
__attribute__((device)) inline void operator delete[](void *p) noexcept { free(p); }
__attribute__((device)) inline void operator delete(void *p, size_t) noexcept { free(p); }
__attribute__((device)) inline void operator delete[](void *p, size_t) noexcept { free(p); }
#pragma clang diagnostic pop

// Device functions are declared before the host's of the same names, which what nvcc includes by itself has.
#include "jax_enzyme_cuda_math.h"
#include <assert.h>
#include <cmath>
#include <cstdlib>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <utility>
#include "jax_enzyme_cuda_own_math.h"
#include "jax_enzyme_cuda_bits.h"
#include "jax_enzyme_cuda_directed.h"
#include "jax_enzyme_cuda_simd.h"

__JE void __trap() { __builtin_trap(); }
__JE void __brkpt() {}
__JE long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
__JE clock_t clock() { return __nvvm_read_ptx_sreg_clock(); }
__JE void __nanosleep(unsigned) {}

#include "jax_enzyme_cuda_half.h"
#include "jax_enzyme_cuda_warp.h"
#include "jax_enzyme_cuda_runtime.h"
