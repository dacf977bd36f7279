// Half precision. `__half` and `__nv_bfloat16` are the compiler's own types, so that operators and conversions are its
// own too; pairs are structures of two.
#pragma once

typedef _Float16 __half;
typedef _Float16 half;
typedef __bf16 __nv_bfloat16;
typedef __bf16 nv_bfloat16;

#define __JE_PAIR(T, name, low)                                                                                 \
  struct alignas(4) name {                                                                                 \
    T x, y;                                                                                                \
    name() = default;                                                                                      \
    __attribute__((host, device)) constexpr name(T a, T b) : x(a), y(b) {}                                 \
  };                                                                                                       \
  __JE_BOTH name operator+(name a, name b) { return {(T)(a.x + b.x), (T)(a.y + b.y)}; }                         \
  __JE_BOTH name operator-(name a, name b) { return {(T)(a.x - b.x), (T)(a.y - b.y)}; }                         \
  __JE_BOTH name operator*(name a, name b) { return {(T)(a.x * b.x), (T)(a.y * b.y)}; }                         \
  __JE_BOTH name operator/(name a, name b) { return {(T)(a.x / b.x), (T)(a.y / b.y)}; }                         \
  __JE_BOTH name __hadd2(name a, name b) { return a + b; }                                                      \
  __JE_BOTH name __hsub2(name a, name b) { return a - b; }                                                      \
  __JE_BOTH name __hmul2(name a, name b) { return a * b; }                                                      \
  __JE_BOTH name __h2div(name a, name b) { return a / b; }                                                      \
  __JE_BOTH name operator-(name a) { return {(T)-a.x, (T)-a.y}; }                                             \
  __JE_BOTH name &operator+=(name &a, name b) { return a = a + b; }                                           \
  __JE_BOTH name &operator-=(name &a, name b) { return a = a - b; }                                           \
  __JE_BOTH name &operator*=(name &a, name b) { return a = a * b; }                                           \
  __JE_BOTH name &operator/=(name &a, name b) { return a = a / b; }                                           \
  __JE_BOTH bool operator==(name a, name b) { return a.x == b.x && a.y == b.y; }                              \
  __JE_BOTH name __hmax2(name a, name b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                     \
  __JE_BOTH name __hmin2(name a, name b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                     \
  __JE_BOTH name __habs2(name a) { return {__habs(a.x), __habs(a.y)}; }                                       \
  __JE_BOTH name h2exp(name a) { return {hexp(a.x), hexp(a.y)}; }                                             \
  __JE_BOTH name h2log(name a) { return {hlog(a.x), hlog(a.y)}; }                                             \
  __JE_BOTH name h2sqrt(name a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                          \
  __JE_BOTH name h2rsqrt(name a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                       \
  __JE_BOTH name h2rcp(name a) { return {hrcp(a.x), hrcp(a.y)}; }                                             \
  __JE_BOTH name __lowhigh2highlow(name a) { return {a.y, a.x}; }                                             \
  __JE_BOTH name __low2##low(name a) { return {a.x, a.x}; }                                                  \
  __JE_BOTH name __high2##low(name a) { return {a.y, a.y}; }                                                 \
  __JE_BOTH name __je_move(unsigned m, name a, int s) { return {__je_move(m, a.x, s), __je_move(m, a.y, s)}; } \
  __JE_BOTH name atomicAdd(name *p, name v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }        \
  __JE_BOTH name __hneg2(name a) { return {(T)-a.x, (T)-a.y}; }                                                 \
  __JE_BOTH name __hfma2(name a, name b, name c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }     \
  __JE_BOTH float __low2float(name a) { return (float)a.x; }                                                    \
  __JE_BOTH float __high2float(name a) { return (float)a.y; }

#define __JE_NARROW(T)                                                                        \
  __JE_BOTH T __hadd(T a, T b) { return a + b; }                                                   \
  __JE_BOTH T __hsub(T a, T b) { return a - b; }                                                   \
  __JE_BOTH T __hmul(T a, T b) { return a * b; }                                                   \
  __JE_BOTH T __hdiv(T a, T b) { return a / b; }                                                   \
  __JE_BOTH T __hneg(T a) { return -a; }                                                           \
  __JE_BOTH T __habs(T a) { return (T)fabsf((float)a); }                                           \
  __JE_BOTH T __hfma(T a, T b, T c) { return (T)fmaf((float)a, (float)b, (float)c); }              \
  __JE_BOTH T __hmax(T a, T b) { return (T)fmaxf((float)a, (float)b); }                            \
  __JE_BOTH T __hmin(T a, T b) { return (T)fminf((float)a, (float)b); }                            \
  __JE_BOTH bool __heq(T a, T b) { return a == b; }                                                \
  __JE_BOTH bool __hne(T a, T b) { return a != b; }                                                \
  __JE_BOTH bool __hlt(T a, T b) { return a < b; }                                                 \
  __JE_BOTH bool __hle(T a, T b) { return a <= b; }                                                \
  __JE_BOTH bool __hgt(T a, T b) { return a > b; }                                                 \
  __JE_BOTH bool __hge(T a, T b) { return a >= b; }                                                \
  __JE_BOTH bool __hisnan(T a) { return a != a; }                                                  \
  __JE_BOTH T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }        \
  __JE_BOTH T __hadd_sat(T a, T b) { return (T)__saturatef((float)(T)(a + b)); }                 \
  __JE_BOTH T __hmul_sat(T a, T b) { return (T)__saturatef((float)(T)(a * b)); }                 \
  __JE_BOTH T __hfma_sat(T a, T b, T c) { return (T)__saturatef((float)__hfma(a, b, c)); }       \
  __JE_BOTH T __hfma_relu(T a, T b, T c) { return __hmax(__hfma(a, b, c), (T)0.0f); }            \
  __JE_BOTH bool __hisinf(T a) { return isinf((float)a); }                                       \
  __JE_BOTH T hexp2(T a) { return (T)exp2f((float)a); }                                          \
  __JE_BOTH T hexp10(T a) { return (T)exp10f((float)a); }                                        \
  __JE_BOTH T hlog2(T a) { return (T)log2f((float)a); }                                          \
  __JE_BOTH T hlog10(T a) { return (T)log10f((float)a); }                                        \
  __JE_BOTH T htanh(T a) { return (T)tanhf((float)a); }                                          \
  __JE_BOTH T hfloor(T a) { return (T)floorf((float)a); }                                        \
  __JE_BOTH T hceil(T a) { return (T)ceilf((float)a); }                                          \
  __JE_BOTH T htrunc(T a) { return (T)truncf((float)a); }                                        \
  __JE_BOTH T hrint(T a) { return (T)rintf((float)a); }                                          \
  __JE_BOTH T hexp(T a) { return (T)expf((float)a); }                                              \
  __JE_BOTH T hlog(T a) { return (T)logf((float)a); }                                              \
  __JE_BOTH T hsin(T a) { return (T)sinf((float)a); }                                              \
  __JE_BOTH T hcos(T a) { return (T)cosf((float)a); }                                              \
  __JE_BOTH T hsqrt(T a) { return (T)sqrtf((float)a); }                                            \
  __JE_BOTH T hrsqrt(T a) { return (T)rsqrtf((float)a); }                                          \
  __JE_BOTH T hrcp(T a) { return (T)(1.0f / (float)a); }

__JE_NARROW(__half)
__JE_NARROW(__nv_bfloat16)
__JE_PAIR(__half, __half2, half2)
__JE_PAIR(__nv_bfloat16, __nv_bfloat162, bfloat162)
#undef __JE_NARROW
#undef __JE_PAIR
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

__JE_BOTH float __half2float(__half x) { return (float)x; }
__JE_BOTH __half __float2half(float x) { return (__half)x; }
__JE_BOTH __half __float2half_rn(float x) { return (__half)x; }
__JE_BOTH __half __double2half(double x) { return (__half)x; }
__JE_BOTH __half __int2half_rn(int x) { return (__half)x; }
__JE_BOTH int __half2int_rn(__half x) { return __float2int_rn((float)x); }
__JE_BOTH __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__JE_BOTH __half2 __half2half2(__half x) { return {x, x}; }
__JE_BOTH __half2 __float2half2_rn(float x) { return {(__half)x, (__half)x}; }
__JE_BOTH __half2 __floats2half2_rn(float x, float y) { return {(__half)x, (__half)y}; }
__JE_BOTH __half2 __float22half2_rn(float2 v) { return {(__half)v.x, (__half)v.y}; }
__JE_BOTH float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
__JE_BOTH __half __low2half(__half2 v) { return v.x; }
__JE_BOTH __half __high2half(__half2 v) { return v.y; }
__JE_BOTH float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
__JE_BOTH __nv_bfloat16 __float2bfloat16(float x) { return (__nv_bfloat16)x; }
__JE_BOTH __nv_bfloat16 __float2bfloat16_rn(float x) { return (__nv_bfloat16)x; }
__JE_BOTH __nv_bfloat16 __double2bfloat16(double x) { return (__nv_bfloat16)(float)x; }
__JE_BOTH __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {(__nv_bfloat16)x, (__nv_bfloat16)y}; }
__JE_BOTH __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {(__nv_bfloat16)v.x, (__nv_bfloat16)v.y}; }
__JE_BOTH float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
__JE_BOTH __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
__JE_BOTH __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__JE_BOTH __nv_bfloat162 __float2bfloat162_rn(float x) { return {(__nv_bfloat16)x, (__nv_bfloat16)x}; }
__JE_BOTH __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__JE_BOTH __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
__JE_BOTH __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
__JE_BOTH __half2 make_half2(__half x, __half y) { return {x, y}; }
__JE_BOTH __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
__JE_BOTH __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
__JE_BOTH __half __uint2half_rn(unsigned x) { return (__half)x; }
__JE_BOTH __half __short2half_rn(short x) { return (__half)x; }
__JE_BOTH int __half2int_rz(__half x) { return __float2int_rz((float)x); }
__JE_BOTH unsigned __half2uint_rn(__half x) { return __float2uint_rn((float)x); }
__JE_BOTH short __half_as_short(__half x) { return __builtin_bit_cast(short, x); }
__JE_BOTH unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
__JE_BOTH __half __short_as_half(short x) { return __builtin_bit_cast(__half, x); }
__JE_BOTH __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }
__JE_BOTH unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return __builtin_bit_cast(unsigned short, x); }
__JE_BOTH __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __builtin_bit_cast(__nv_bfloat16, x); }
