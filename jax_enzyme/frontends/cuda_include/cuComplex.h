// CUDA's complex numbers: pairs, and functions on them.
#pragma once
#include "jax_enzyme_cuda.h"

#define __JE_COMPLEX(T, pair, name, suffix)                                                                         \
  __JE_BOTH name make_##name(T x, T y) { return make_##pair(x, y); }                                                     \
  __JE_BOTH T cuCreal##suffix(name z) { return z.x; }                                                                    \
  __JE_BOTH T cuCimag##suffix(name z) { return z.y; }                                                                    \
  __JE_BOTH name cuConj##suffix(name z) { return make_##pair(z.x, -z.y); }                                               \
  __JE_BOTH name cuCadd##suffix(name a, name b) { return make_##pair(a.x + b.x, a.y + b.y); }                            \
  __JE_BOTH name cuCsub##suffix(name a, name b) { return make_##pair(a.x - b.x, a.y - b.y); }                            \
  __JE_BOTH name cuCmul##suffix(name a, name b) { return make_##pair(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }    \
  __JE_BOTH name cuCdiv##suffix(name a, name b) {                                                                        \
    T scale = b.x * b.x + b.y * b.y;                                                                                \
    return make_##pair((a.x * b.x + a.y * b.y) / scale, (a.y * b.x - a.x * b.y) / scale);                           \
  }                                                                                                                 \
  __JE_BOTH T cuCabs##suffix(name z) { return hypot(z.x, z.y); }                                                         \
  __JE_BOTH name cuCfma##suffix(name a, name b, name c) { return cuCadd##suffix(cuCmul##suffix(a, b), c); }

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
__JE_COMPLEX(float, float2, cuFloatComplex, f)
__JE_COMPLEX(double, double2, cuDoubleComplex, )
#undef __JE_COMPLEX
__JE_BOTH cuComplex make_cuComplex(float x, float y) { return make_float2(x, y); }
__JE_BOTH cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return make_float2((float)z.x, (float)z.y); }
__JE_BOTH cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return make_double2(z.x, z.y); }
