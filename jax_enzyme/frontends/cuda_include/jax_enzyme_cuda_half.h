// Half precision. `__half` and `__nv_bfloat16` are the compiler's own types, so that operators and conversions are its
// own too; pairs are structures of two.
#pragma once

typedef _Float16 __half;
typedef _Float16 half;
typedef __bf16 __nv_bfloat16;
typedef __bf16 nv_bfloat16;

#define __JE_PAIR(T, name)                                                                                 \
  struct alignas(4) name {                                                                                 \
    T x, y;                                                                                                \
  };                                                                                                       \
  __JE name operator+(name a, name b) { return {(T)(a.x + b.x), (T)(a.y + b.y)}; }                         \
  __JE name operator-(name a, name b) { return {(T)(a.x - b.x), (T)(a.y - b.y)}; }                         \
  __JE name operator*(name a, name b) { return {(T)(a.x * b.x), (T)(a.y * b.y)}; }                         \
  __JE name operator/(name a, name b) { return {(T)(a.x / b.x), (T)(a.y / b.y)}; }                         \
  __JE name __hadd2(name a, name b) { return a + b; }                                                      \
  __JE name __hsub2(name a, name b) { return a - b; }                                                      \
  __JE name __hmul2(name a, name b) { return a * b; }                                                      \
  __JE name __h2div(name a, name b) { return a / b; }                                                      \
  __JE name __hneg2(name a) { return {(T)-a.x, (T)-a.y}; }                                                 \
  __JE name __hfma2(name a, name b, name c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }     \
  __JE float __low2float(name a) { return (float)a.x; }                                                    \
  __JE float __high2float(name a) { return (float)a.y; }

#define __JE_NARROW(T)                                                                        \
  __JE T __hadd(T a, T b) { return a + b; }                                                   \
  __JE T __hsub(T a, T b) { return a - b; }                                                   \
  __JE T __hmul(T a, T b) { return a * b; }                                                   \
  __JE T __hdiv(T a, T b) { return a / b; }                                                   \
  __JE T __hneg(T a) { return -a; }                                                           \
  __JE T __habs(T a) { return (T)fabsf((float)a); }                                           \
  __JE T __hfma(T a, T b, T c) { return (T)fmaf((float)a, (float)b, (float)c); }              \
  __JE T __hmax(T a, T b) { return (T)fmaxf((float)a, (float)b); }                            \
  __JE T __hmin(T a, T b) { return (T)fminf((float)a, (float)b); }                            \
  __JE bool __heq(T a, T b) { return a == b; }                                                \
  __JE bool __hne(T a, T b) { return a != b; }                                                \
  __JE bool __hlt(T a, T b) { return a < b; }                                                 \
  __JE bool __hle(T a, T b) { return a <= b; }                                                \
  __JE bool __hgt(T a, T b) { return a > b; }                                                 \
  __JE bool __hge(T a, T b) { return a >= b; }                                                \
  __JE bool __hisnan(T a) { return a != a; }                                                  \
  __JE T hexp(T a) { return (T)expf((float)a); }                                              \
  __JE T hlog(T a) { return (T)logf((float)a); }                                              \
  __JE T hsin(T a) { return (T)sinf((float)a); }                                              \
  __JE T hcos(T a) { return (T)cosf((float)a); }                                              \
  __JE T hsqrt(T a) { return (T)sqrtf((float)a); }                                            \
  __JE T hrsqrt(T a) { return (T)rsqrtf((float)a); }                                          \
  __JE T hrcp(T a) { return (T)(1.0f / (float)a); }

__JE_NARROW(__half)
__JE_NARROW(__nv_bfloat16)
__JE_PAIR(__half, __half2)
__JE_PAIR(__nv_bfloat16, __nv_bfloat162)
#undef __JE_NARROW
#undef __JE_PAIR
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

__JE float __half2float(__half x) { return (float)x; }
__JE __half __float2half(float x) { return (__half)x; }
__JE __half __float2half_rn(float x) { return (__half)x; }
__JE __half __double2half(double x) { return (__half)x; }
__JE __half __int2half_rn(int x) { return (__half)x; }
__JE int __half2int_rn(__half x) { return (int)lrintf((float)x); }
__JE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__JE __half2 __half2half2(__half x) { return {x, x}; }
__JE __half2 __float2half2_rn(float x) { return {(__half)x, (__half)x}; }
__JE __half2 __floats2half2_rn(float x, float y) { return {(__half)x, (__half)y}; }
__JE __half2 __float22half2_rn(float2 v) { return {(__half)v.x, (__half)v.y}; }
__JE float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
__JE __half __low2half(__half2 v) { return v.x; }
__JE __half __high2half(__half2 v) { return v.y; }
__JE float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
__JE __nv_bfloat16 __float2bfloat16(float x) { return (__nv_bfloat16)x; }
__JE __nv_bfloat16 __float2bfloat16_rn(float x) { return (__nv_bfloat16)x; }
__JE __nv_bfloat16 __double2bfloat16(double x) { return (__nv_bfloat16)(float)x; }
__JE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {(__nv_bfloat16)x, (__nv_bfloat16)y}; }
__JE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {(__nv_bfloat16)v.x, (__nv_bfloat16)v.y}; }
__JE float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
