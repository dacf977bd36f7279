// cuSOLVER for host functions on the CPU: names and types as cuSOLVER has them; `runtime/cuda_solver.cpp` calls LAPACK.
#pragma once
#include "cublas_v2.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef enum {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_ARCH_MISMATCH = 4,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
  CUSOLVER_STATUS_INTERNAL_ERROR = 7
} cusolverStatus_t;
typedef enum { CUSOLVER_EIG_TYPE_1 = 1, CUSOLVER_EIG_TYPE_2, CUSOLVER_EIG_TYPE_3 } cusolverEigType_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR } cusolverEigMode_t;

extern "C" {
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t);
#define __JE_SOLVER(L, T)                                                                                             \
  cusolverStatus_t cusolverDn##L##potrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int n, T *a, int lda,        \
                                                   int *size);                                                        \
  cusolverStatus_t cusolverDn##L##potrf(cusolverDnHandle_t, cublasFillMode_t, int n, T *a, int lda, T *work, int size, \
                                        int *info);                                                                   \
  cusolverStatus_t cusolverDn##L##potrs(cusolverDnHandle_t, cublasFillMode_t, int n, int columns, const T *a, int lda, \
                                        T *b, int ldb, int *info);                                                    \
  cusolverStatus_t cusolverDn##L##getrf_bufferSize(cusolverDnHandle_t, int m, int n, T *a, int lda, int *size);       \
  cusolverStatus_t cusolverDn##L##getrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *work, int *pivots,        \
                                        int *info);                                                                   \
  cusolverStatus_t cusolverDn##L##getrs(cusolverDnHandle_t, cublasOperation_t, int n, int columns, const T *a, int lda, \
                                        const int *pivots, T *b, int ldb, int *info);                                 \
  cusolverStatus_t cusolverDn##L##geqrf_bufferSize(cusolverDnHandle_t, int m, int n, T *a, int lda, int *size);       \
  cusolverStatus_t cusolverDn##L##geqrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *tau, T *work, int size,   \
                                        int *info);                                                                   \
  cusolverStatus_t cusolverDn##L##ormqr_bufferSize(cusolverDnHandle_t, cublasSideMode_t, cublasOperation_t, int m,    \
                                                   int n, int k, const T *a, int lda, const T *tau, const T *c,       \
                                                   int ldc, int *size);                                               \
  cusolverStatus_t cusolverDn##L##ormqr(cusolverDnHandle_t, cublasSideMode_t, cublasOperation_t, int m, int n, int k, \
                                        const T *a, int lda, const T *tau, T *c, int ldc, T *work, int size,          \
                                        int *info);                                                                   \
  cusolverStatus_t cusolverDn##L##syevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int n,    \
                                                   const T *a, int lda, const T *w, int *size);                       \
  cusolverStatus_t cusolverDn##L##syevd(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int n, T *a, int lda, \
                                        T *w, T *work, int size, int *info);                                          \
  cusolverStatus_t cusolverDn##L##gesvd_bufferSize(cusolverDnHandle_t, int m, int n, int *size);                      \
  cusolverStatus_t cusolverDn##L##gesvd(cusolverDnHandle_t, signed char, signed char, int m, int n, T *a, int lda,    \
                                        T *s, T *u, int ldu, T *v, int ldv, T *work, int size, T *rwork, int *info);
__JE_SOLVER(S, float)
__JE_SOLVER(D, double)
#undef __JE_SOLVER
}
