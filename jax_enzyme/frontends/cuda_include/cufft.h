// cuFFT for host functions on the CPU: names and types as cuFFT has them; `runtime/cuda_fft.cpp` transforms.
#pragma once
#include "cuComplex.h"

#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
typedef enum {
  CUFFT_SUCCESS, CUFFT_INVALID_PLAN, CUFFT_ALLOC_FAILED, CUFFT_INVALID_TYPE, CUFFT_INVALID_VALUE, CUFFT_INTERNAL_ERROR,
  CUFFT_EXEC_FAILED, CUFFT_SETUP_FAILED, CUFFT_INVALID_SIZE, CUFFT_UNALIGNED_DATA,
  CUFFT_INCOMPLETE_PARAMETER_LIST, CUFFT_INVALID_DEVICE, CUFFT_PARSE_ERROR, CUFFT_NO_WORKSPACE, CUFFT_NOT_IMPLEMENTED,
  CUFFT_NOT_SUPPORTED = 16
} cufftResult;
typedef enum {
  CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29, CUFFT_D2Z = 0x6a, CUFFT_Z2D = 0x6c, CUFFT_Z2Z = 0x69
} cufftType;
typedef struct cufftPlan *cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

extern "C" {
cufftResult cufftPlan1d(cufftHandle *, int n, cufftType, int batch);
cufftResult cufftPlan2d(cufftHandle *, int n, int m, cufftType);
cufftResult cufftPlan3d(cufftHandle *, int n, int m, int k, cufftType);
cufftResult cufftPlanMany(cufftHandle *, int rank, int *n, int *from_extent, int from_step, int from_distance,
                          int *to_extent, int to_step, int to_distance, cufftType, int batch);
cufftResult cufftMakePlan1d(cufftHandle, int n, cufftType, int batch, size_t *workspace);
cufftResult cufftMakePlan2d(cufftHandle, int n, int m, cufftType, size_t *workspace);
cufftResult cufftMakePlan3d(cufftHandle, int n, int m, int k, cufftType, size_t *workspace);
cufftResult cufftMakePlanMany(cufftHandle, int rank, int *n, int *from_extent, int from_step, int from_distance,
                              int *to_extent, int to_step, int to_distance, cufftType, int batch, size_t *workspace);
cufftResult cufftCreate(cufftHandle *);
cufftResult cufftDestroy(cufftHandle);
cufftResult cufftSetStream(cufftHandle, cudaStream_t);
cufftResult cufftSetAutoAllocation(cufftHandle, int);
cufftResult cufftSetWorkArea(cufftHandle, void *);
cufftResult cufftExecC2C(cufftHandle, cufftComplex *, cufftComplex *, int direction);
cufftResult cufftExecZ2Z(cufftHandle, cufftDoubleComplex *, cufftDoubleComplex *, int direction);
cufftResult cufftExecR2C(cufftHandle, cufftReal *, cufftComplex *);
cufftResult cufftExecC2R(cufftHandle, cufftComplex *, cufftReal *);
cufftResult cufftExecD2Z(cufftHandle, cufftDoubleReal *, cufftDoubleComplex *);
cufftResult cufftExecZ2D(cufftHandle, cufftDoubleComplex *, cufftDoubleReal *);
}
