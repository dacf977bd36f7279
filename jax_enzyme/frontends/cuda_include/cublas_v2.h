// cuBLAS for host functions on the CPU: names and types as cuBLAS has them; `runtime/cuda_blas.cpp` calls BLAS.
#pragma once
#define CUBLAS_API_H_
#include "jax_enzyme_cuda.h"

typedef struct cublasContext *cublasHandle_t;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C } cublasOperation_t;
typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT } cublasSideMode_t;
typedef enum { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE } cublasPointerMode_t;
typedef enum { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH } cublasMath_t;

enum cudaDataType {
  CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_32F, CUDA_C_64F, CUDA_C_16F, CUDA_C_8I, CUDA_R_8U, CUDA_C_8U,
  CUDA_R_32I, CUDA_C_32I, CUDA_R_32U, CUDA_C_32U, CUDA_R_16BF, CUDA_C_16BF, CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2
};
typedef enum cudaDataType cudaDataType_t;
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC,
  CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32I_PEDANTIC,
  CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_TF32
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };

// Declared, and refused where a host function calls them: what has several types, half precision.
extern "C" {
cublasStatus_t cublasDotEx(cublasHandle_t, int n, const void *x, cudaDataType, int ix, const void *y, cudaDataType, int iy,
                           void *result, cudaDataType, cudaDataType);
cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const __half *alpha,
                           const __half *a, int lda, const __half *b, int ldb, const __half *beta, __half *c, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType, int lda, const void *b, cudaDataType, int ldb, const void *beta,
                            void *c, cudaDataType, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType, int lda, long long a_step,
                                          const void *b, cudaDataType, int ldb, long long b_step, const void *beta,
                                          void *c, cudaDataType, int ldc, long long c_step, int count,
                                          cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasHgemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                  const __half *alpha, const __half *const a[], int lda, const __half *const b[],
                                  int ldb, const __half *beta, __half *const c[], int ldc, int count);
}
extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t *);
cublasStatus_t cublasDestroy_v2(cublasHandle_t);
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *);
const char *cublasGetStatusName(cublasStatus_t);
const char *cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasSetVector(int n, int size, const void *from, int from_step, void *to, int to_step);
cublasStatus_t cublasGetVector(int n, int size, const void *from, int from_step, void *to, int to_step);
cublasStatus_t cublasSetMatrix(int m, int n, int size, const void *from, int lda, void *to, int ldb);
cublasStatus_t cublasGetMatrix(int m, int n, int size, const void *from, int lda, void *to, int ldb);
#define __JE_BLAS(L, T)                                                                                               \
  cublasStatus_t cublas##L##axpy_v2(cublasHandle_t, int n, const T *alpha, const T *x, int ix, T *y, int iy);         \
  cublasStatus_t cublas##L##scal_v2(cublasHandle_t, int n, const T *alpha, T *x, int ix);                             \
  cublasStatus_t cublas##L##copy_v2(cublasHandle_t, int n, const T *x, int ix, T *y, int iy);                         \
  cublasStatus_t cublas##L##swap_v2(cublasHandle_t, int n, T *x, int ix, T *y, int iy);                               \
  cublasStatus_t cublas##L##dot_v2(cublasHandle_t, int n, const T *x, int ix, const T *y, int iy, T *result);         \
  cublasStatus_t cublas##L##nrm2_v2(cublasHandle_t, int n, const T *x, int ix, T *result);                            \
  cublasStatus_t cublas##L##asum_v2(cublasHandle_t, int n, const T *x, int ix, T *result);                            \
  cublasStatus_t cublas##L##gemv_v2(cublasHandle_t, cublasOperation_t, int m, int n, const T *alpha, const T *a,      \
                                    int lda, const T *x, int ix, const T *beta, T *y, int iy);                        \
  cublasStatus_t cublas##L##ger_v2(cublasHandle_t, int m, int n, const T *alpha, const T *x, int ix, const T *y,      \
                                   int iy, T *a, int lda);                                                            \
  cublasStatus_t cublas##L##gemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,        \
                                    const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,    \
                                    int ldc);                                                                         \
  cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,    \
                                               int k, const T *alpha, const T *a, int lda, long long stride_a,        \
                                               const T *b, int ldb, long long stride_b, const T *beta, T *c, int ldc, \
                                               long long stride_c, int count);                                        \
  cublasStatus_t cublas##L##gemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,    \
                                        const T *alpha, const T *const a[], int lda, const T *const b[], int ldb,     \
                                        const T *beta, T *const c[], int ldc, int count);                             \
  cublasStatus_t cublas##L##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, const T *alpha,  \
                                 const T *a, int lda, const T *beta, const T *b, int ldb, T *c, int ldc);             \
  cublasStatus_t cublasI##L##amax_v2(cublasHandle_t, int n, const T *x, int ix, int *result);                         \
  cublasStatus_t cublasI##L##amin_v2(cublasHandle_t, int n, const T *x, int ix, int *result);                         \
  cublasStatus_t cublas##L##trsm_v2(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,            \
                                    cublasDiagType_t, int m, int n, const T *alpha, const T *a, int lda, T *b,        \
                                    int ldb);                                                                         \
  cublasStatus_t cublas##L##syrk_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int n, int k,                \
                                    const T *alpha, const T *a, int lda, const T *beta, T *c, int ldc);               \
  cublasStatus_t cublas##L##symm_v2(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int m, int n, const T *alpha, \
                                    const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc);          \
  cublasStatus_t cublas##L##symv_v2(cublasHandle_t, cublasFillMode_t, int n, const T *alpha, const T *a, int lda,     \
                                    const T *x, int ix, const T *beta, T *y, int iy);                                 \
  cublasStatus_t cublas##L##trsv_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int n,     \
                                    const T *a, int lda, T *x, int ix);                                               \
  cublasStatus_t cublas##L##trmv_v2(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int n,     \
                                    const T *a, int lda, T *x, int ix);                                               \
  cublasStatus_t cublas##L##getrfBatched(cublasHandle_t, int n, T *const a[], int lda, int *pivots, int *info,        \
                                         int count);                                                                  \
  cublasStatus_t cublas##L##getrsBatched(cublasHandle_t, cublasOperation_t, int n, int columns, const T *const a[],   \
                                         int lda, const int *pivots, T *const b[], int ldb, int *info, int count);    \
  cublasStatus_t cublas##L##getriBatched(cublasHandle_t, int n, const T *const a[], int lda, const int *pivots,       \
                                         T *const inverse[], int ldc, int *info, int count);                          \
  cublasStatus_t cublas##L##matinvBatched(cublasHandle_t, int n, const T *const a[], int lda, T *const inverse[],     \
                                          int ldc, int *info, int count);
__JE_BLAS(S, float)
__JE_BLAS(D, double)
#undef __JE_BLAS
}

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasIsamax cublasISamax_v2
#define cublasIdamax cublasIDamax_v2
#define cublasIsamin cublasISamin_v2
#define cublasIdamin cublasIDamin_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasScopy cublasScopy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasSswap cublasSswap_v2
#define cublasDswap cublasDswap_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDasum cublasDasum_v2
#define cublasSgemv cublasSgemv_v2
#define cublasDgemv cublasDgemv_v2
#define cublasSger cublasSger_v2
#define cublasDger cublasDger_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2
#define cublasStrsm cublasStrsm_v2
#define cublasDtrsm cublasDtrsm_v2
#define cublasSsyrk cublasSsyrk_v2
#define cublasDsyrk cublasDsyrk_v2
#define cublasSsymm cublasSsymm_v2
#define cublasDsymm cublasDsymm_v2
#define cublasSsymv cublasSsymv_v2
#define cublasDsymv cublasDsymv_v2
#define cublasStrsv cublasStrsv_v2
#define cublasDtrsv cublasDtrsv_v2
#define cublasStrmv cublasStrmv_v2
#define cublasDtrmv cublasDtrmv_v2
