// cuRAND's host functions, for files that use them beside their kernels: declared, and refused where they are called. The
// functions of the device are in curand_kernel.h.
#pragma once
#include "jax_enzyme_cuda.h"

typedef struct curandGenerator_st *curandGenerator_t;
typedef enum { CURAND_STATUS_SUCCESS = 0 } curandStatus_t;
typedef curandStatus_t curandStatus;
typedef enum {
  CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW = 101, CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141, CURAND_RNG_PSEUDO_MT19937 = 142, CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200, CURAND_RNG_QUASI_SOBOL32 = 201
} curandRngType_t;
typedef curandRngType_t curandRngType;

extern "C" {
curandStatus_t curandCreateGenerator(curandGenerator_t *, curandRngType_t);
curandStatus_t curandCreateGeneratorHost(curandGenerator_t *, curandRngType_t);
curandStatus_t curandDestroyGenerator(curandGenerator_t);
curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t);
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t, unsigned long long seed);
curandStatus_t curandSetGeneratorOffset(curandGenerator_t, unsigned long long offset);
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t, unsigned dimensions);
curandStatus_t curandGenerate(curandGenerator_t, unsigned *, size_t n);
curandStatus_t curandGenerateUniform(curandGenerator_t, float *, size_t n);
curandStatus_t curandGenerateUniformDouble(curandGenerator_t, double *, size_t n);
curandStatus_t curandGenerateNormal(curandGenerator_t, float *, size_t n, float mean, float deviation);
curandStatus_t curandGenerateNormalDouble(curandGenerator_t, double *, size_t n, double mean, double deviation);
curandStatus_t curandGenerateLogNormal(curandGenerator_t, float *, size_t n, float mean, float deviation);
curandStatus_t curandGeneratePoisson(curandGenerator_t, unsigned *, size_t n, double mean);
}
