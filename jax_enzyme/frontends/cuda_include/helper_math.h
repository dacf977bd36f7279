// Of CUDA's samples, and found in many programs: arithmetic of short vectors, component by component.
#pragma once
#include <math.h>

#include "cuda_runtime.h"

typedef unsigned int uint;
typedef unsigned short ushort;


#define JE_OPERATOR(op, S, V, make, n)                                                      \
  inline __host__ __device__ V operator op(V a, V b) { return make(JE_PAIRS_##n(op)); }     \
  inline __host__ __device__ V operator op(V a, S b) { return make(JE_RIGHT_##n(op)); }     \
  inline __host__ __device__ V operator op(S a, V b) { return make(JE_LEFT_##n(op)); }      \
  inline __host__ __device__ void operator op##=(V &a, V b) { a = make(JE_PAIRS_##n(op)); } \
  inline __host__ __device__ void operator op##=(V &a, S b) { a = make(JE_RIGHT_##n(op)); }
#define JE_PAIRS_2(op) a.x op b.x, a.y op b.y
#define JE_PAIRS_3(op) JE_PAIRS_2(op), a.z op b.z
#define JE_PAIRS_4(op) JE_PAIRS_3(op), a.w op b.w
#define JE_RIGHT_2(op) a.x op b, a.y op b
#define JE_RIGHT_3(op) JE_RIGHT_2(op), a.z op b
#define JE_RIGHT_4(op) JE_RIGHT_3(op), a.w op b
#define JE_LEFT_2(op) a op b.x, a op b.y
#define JE_LEFT_3(op) JE_LEFT_2(op), a op b.z
#define JE_LEFT_4(op) JE_LEFT_3(op), a op b.w
#define JE_CALL_2(f) f(a.x, b.x), f(a.y, b.y)
#define JE_CALL_3(f) JE_CALL_2(f), f(a.z, b.z)
#define JE_CALL_4(f) JE_CALL_3(f), f(a.w, b.w)
#define JE_EACH_2(f) f(v.x), f(v.y)
#define JE_EACH_3(f) JE_EACH_2(f), f(v.z)
#define JE_EACH_4(f) JE_EACH_3(f), f(v.w)
#define JE_SAME_2(s) s, s
#define JE_SAME_3(s) s, s, s
#define JE_SAME_4(s) s, s, s, s
#define JE_SUM_2 a.x *b.x + a.y *b.y
#define JE_SUM_3 JE_SUM_2 + a.z *b.z
#define JE_SUM_4 JE_SUM_3 + a.w *b.w

#define JE_SCALAR(S)                                                             \
  inline __host__ __device__ S lerp(S a, S b, S t) { return a + t * (b - a); }   \
  inline __host__ __device__ S je_frac(S v) { return v - static_cast<S>(floor(v)); }
JE_SCALAR(float)
JE_SCALAR(double)
inline __host__ __device__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __host__ __device__ int clamp(int f, int a, int b) { return f < a ? a : f > b ? b : f; }
inline __host__ __device__ uint clamp(uint f, uint a, uint b) { return f < a ? a : f > b ? b : f; }
inline __host__ __device__ float je_less(float a, float b) { return fminf(a, b); }
inline __host__ __device__ float je_more(float a, float b) { return fmaxf(a, b); }
inline __host__ __device__ double je_less(double a, double b) { return fmin(a, b); }
inline __host__ __device__ double je_more(double a, double b) { return fmax(a, b); }
inline __host__ __device__ int je_less(int a, int b) { return a < b ? a : b; }
inline __host__ __device__ int je_more(int a, int b) { return a > b ? a : b; }
inline __host__ __device__ uint je_less(uint a, uint b) { return a < b ? a : b; }
inline __host__ __device__ uint je_more(uint a, uint b) { return a > b ? a : b; }

#define JE_VECTOR(S, V, n)                                                                        \
  inline __host__ __device__ V make_##V(S s) { return make_##V(JE_SAME_##n(s)); }                 \
  JE_OPERATOR(+, S, V, make_##V, n)                                                               \
  JE_OPERATOR(-, S, V, make_##V, n)                                                               \
  JE_OPERATOR(*, S, V, make_##V, n)                                                               \
  inline __host__ __device__ V min(V a, V b) { return make_##V(JE_CALL_##n(je_less)); }           \
  inline __host__ __device__ V max(V a, V b) { return make_##V(JE_CALL_##n(je_more)); }           \
  inline __host__ __device__ V clamp(V v, V a, V b) { return min(max(v, a), b); }                 \
  inline __host__ __device__ V clamp(V v, S a, S b) { return clamp(v, make_##V(a), make_##V(b)); } \
  inline __host__ __device__ S dot(V a, V b) { return JE_SUM_##n; }
#define JE_SIGNED(S, V, n)                                                            \
  JE_VECTOR(S, V, n)                                                                  \
  inline __host__ __device__ V operator-(V v) { return make_##V(JE_EACH_##n(-)); }
#define JE_REAL(S, V, n)                                                                         \
  JE_SIGNED(S, V, n)                                                                             \
  JE_OPERATOR(/, S, V, make_##V, n)                                                              \
  inline __host__ __device__ V lerp(V a, V b, S t) { return a + t * (b - a); }                   \
  inline __host__ __device__ S length(V v) { return sqrt(dot(v, v)); }                           \
  inline __host__ __device__ V normalize(V v) { return v * (S(1) / sqrt(dot(v, v))); }           \
  inline __host__ __device__ V floor(V v) { return make_##V(JE_EACH_##n(floor)); }               \
  inline __host__ __device__ V fabs(V v) { return make_##V(JE_EACH_##n(fabs)); }                 \
  inline __host__ __device__ V frac(V v) { return make_##V(JE_EACH_##n(je_frac)); }              \
  inline __host__ __device__ V fmod(V a, V b) { return make_##V(JE_CALL_##n(fmod)); }            \
  inline __host__ __device__ V reflect(V v, V a) { return v - S(2) * a * dot(a, v); }
#define JE_ALL(KIND, S, V) KIND(S, V##2, 2) KIND(S, V##3, 3) KIND(S, V##4, 4)
JE_ALL(JE_REAL, float, float)
JE_ALL(JE_REAL, double, double)
JE_ALL(JE_SIGNED, int, int)
JE_ALL(JE_VECTOR, uint, uint)

inline __host__ __device__ float frac(float v) { return v - floorf(v); }
inline __host__ __device__ float2 fminf(float2 a, float2 b) { return min(a, b); }
inline __host__ __device__ float3 fminf(float3 a, float3 b) { return min(a, b); }
inline __host__ __device__ float4 fminf(float4 a, float4 b) { return min(a, b); }
inline __host__ __device__ float2 fmaxf(float2 a, float2 b) { return max(a, b); }
inline __host__ __device__ float3 fmaxf(float3 a, float3 b) { return max(a, b); }
inline __host__ __device__ float4 fmaxf(float4 a, float4 b) { return max(a, b); }
inline __host__ __device__ float2 floorf(float2 v) { return floor(v); }
inline __host__ __device__ float3 floorf(float3 v) { return floor(v); }
inline __host__ __device__ float4 floorf(float4 v) { return floor(v); }
inline __host__ __device__ float3 fracf(float3 v) { return frac(v); }
inline __host__ __device__ float3 cross(float3 a, float3 b) {
  return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
inline __host__ __device__ double3 cross(double3 a, double3 b) {
  return make_double3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
inline __host__ __device__ float smoothstep(float a, float b, float x) {
  float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}

#define JE_NARROWED(S, V)                                                                               \
  inline __host__ __device__ V##2 make_##V##2(V##3 a) { return make_##V##2(a.x, a.y); }                 \
  inline __host__ __device__ V##3 make_##V##3(V##2 a) { return make_##V##3(a.x, a.y, 0); }              \
  inline __host__ __device__ V##3 make_##V##3(V##2 a, S s) { return make_##V##3(a.x, a.y, s); }         \
  inline __host__ __device__ V##3 make_##V##3(V##4 a) { return make_##V##3(a.x, a.y, a.z); }            \
  inline __host__ __device__ V##4 make_##V##4(V##3 a) { return make_##V##4(a.x, a.y, a.z, 0); }         \
  inline __host__ __device__ V##4 make_##V##4(V##3 a, S w) { return make_##V##4(a.x, a.y, a.z, w); }
JE_NARROWED(float, float)
JE_NARROWED(double, double)
JE_NARROWED(int, int)
JE_NARROWED(uint, uint)
#define JE_CONVERTED(V, W)                                                                                       \
  inline __host__ __device__ V##2 make_##V##2(W##2 a) { return make_##V##2(V(a.x), V(a.y)); }                    \
  inline __host__ __device__ V##3 make_##V##3(W##3 a) { return make_##V##3(V(a.x), V(a.y), V(a.z)); }            \
  inline __host__ __device__ V##4 make_##V##4(W##4 a) { return make_##V##4(V(a.x), V(a.y), V(a.z), V(a.w)); }
JE_CONVERTED(float, int)
JE_CONVERTED(float, uint)
JE_CONVERTED(int, float)
JE_CONVERTED(int, uint)
JE_CONVERTED(uint, int)
