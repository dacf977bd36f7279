// cuBLAS on the CPU: calls of BLAS, whose derivatives are rules. Scalars are behind pointers, on whatever side.
// provides: cublas[A-Z]\w+
#include <stddef.h>
#include <string.h>

extern "C" {

#define DECLARE(L, l, T)                                                                                              \
  void l##axpy_(const int *, const T *, const T *, const int *, T *, const int *);                                    \
  void l##scal_(const int *, const T *, T *, const int *);                                                            \
  void l##copy_(const int *, const T *, const int *, T *, const int *);                                               \
  void l##swap_(const int *, T *, const int *, T *, const int *);                                                     \
  T l##dot_(const int *, const T *, const int *, const T *, const int *);                                             \
  T l##nrm2_(const int *, const T *, const int *);                                                                    \
  T l##asum_(const int *, const T *, const int *);                                                                    \
  void l##gemv_(const char *, const int *, const int *, const T *, const T *, const int *, const T *, const int *,    \
                const T *, T *, const int *);                                                                         \
  void l##ger_(const int *, const int *, const T *, const T *, const int *, const T *, const int *, T *, const int *);\
  void l##gemm_(const char *, const char *, const int *, const int *, const int *, const T *, const T *, const int *, \
                const T *, const int *, const T *, T *, const int *);                                                 \
  void l##trsm_(const char *, const char *, const char *, const char *, const int *, const int *, const T *,          \
                const T *, const int *, T *, const int *);                                                            \
  void l##syrk_(const char *, const char *, const int *, const int *, const T *, const T *, const int *, const T *,   \
                T *, const int *);                                                                                    \
  void l##symm_(const char *, const char *, const int *, const int *, const T *, const T *, const int *, const T *,   \
                const int *, const T *, T *, const int *);                                                            \
  void l##symv_(const char *, const int *, const T *, const T *, const int *, const T *, const int *, const T *, T *, \
                const int *);                                                                                         \
  void l##trsv_(const char *, const char *, const char *, const int *, const T *, const int *, T *, const int *);     \
  void l##trmv_(const char *, const char *, const char *, const int *, const T *, const int *, T *, const int *);     \
  int cusolverDn##L##getrf(void *, int m, int n, T *a, int lda, T *work, int *pivots, int *info);                     \
  int cusolverDn##L##getrs(void *, int op, int n, int columns, const T *a, int lda, const int *pivots, T *b, int ldb, \
                           int *info);
DECLARE(S, s, float)
DECLARE(D, d, double)
#undef DECLARE

static const char OPERATIONS[] = "NTC", SIDES[] = "LR", TRIANGLES[] = "LU", DIAGONALS[] = "NU";

int cublasCreate_v2(void **handle) { return *handle = nullptr, 0; }
int cublasDestroy_v2(void *) { return 0; }
int cublasSetStream_v2(void *, void *) { return 0; }
int cublasSetPointerMode_v2(void *, int) { return 0; }
int cublasSetMathMode(void *, int) { return 0; }
int cublasGetVersion_v2(void *, int *version) { return *version = 120900, 0; }
const char *cublasGetStatusName(int status) { return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS"; }
const char *cublasGetStatusString(int status) { return status ? "an error" : "success"; }
int cublasSetVector(int n, int size, const void *from, int from_step, void *to, int to_step) {
  for (int i = 0; i < n; i++)
    memcpy((char *)to + (size_t)i * to_step * size, (const char *)from + (size_t)i * from_step * size, size);
  return 0;
}
int cublasGetVector(int n, int size, const void *from, int from_step, void *to, int to_step) {
  return cublasSetVector(n, size, from, from_step, to, to_step);
}
int cublasSetMatrix(int m, int n, int size, const void *from, int lda, void *to, int ldb) {
  for (int j = 0; j < n; j++)
    memcpy((char *)to + (size_t)j * ldb * size, (const char *)from + (size_t)j * lda * size, (size_t)m * size);
  return 0;
}
int cublasGetMatrix(int m, int n, int size, const void *from, int lda, void *to, int ldb) {
  return cublasSetMatrix(m, n, size, from, lda, to, ldb);
}

}  // extern "C"
// The first place, from 1 on, of the number that is largest or smallest without its sign; 0 where there is none.
template <class T> static int extremum(int n, const T *x, int ix, int sign, int *result) {
  int found = 0;
  for (int i = 1; i < n && ix > 0; i++)
    if (sign * __builtin_fabs(x[(size_t)i * ix]) > sign * __builtin_fabs(x[(size_t)found * ix])) found = i;
  *result = n > 0 && ix > 0 ? found + 1 : 0;
  return 0;
}
extern "C" {

#define DEFINE(L, l, T)                                                                                               \
  int cublas##L##axpy_v2(void *, int n, const T *alpha, const T *x, int ix, T *y, int iy) {                           \
    return l##axpy_(&n, alpha, x, &ix, y, &iy), 0;                                                                    \
  }                                                                                                                   \
  int cublas##L##scal_v2(void *, int n, const T *alpha, T *x, int ix) { return l##scal_(&n, alpha, x, &ix), 0; }      \
  int cublas##L##copy_v2(void *, int n, const T *x, int ix, T *y, int iy) {                                           \
    return l##copy_(&n, x, &ix, y, &iy), 0;                                                                           \
  }                                                                                                                   \
  int cublas##L##swap_v2(void *, int n, T *x, int ix, T *y, int iy) { return l##swap_(&n, x, &ix, y, &iy), 0; }       \
  int cublas##L##dot_v2(void *, int n, const T *x, int ix, const T *y, int iy, T *result) {                           \
    return *result = l##dot_(&n, x, &ix, y, &iy), 0;                                                                  \
  }                                                                                                                   \
  int cublas##L##nrm2_v2(void *, int n, const T *x, int ix, T *result) {                                              \
    return *result = l##nrm2_(&n, x, &ix), 0;                                                                         \
  }                                                                                                                   \
  int cublas##L##asum_v2(void *, int n, const T *x, int ix, T *result) {                                              \
    return *result = l##asum_(&n, x, &ix), 0;                                                                         \
  }                                                                                                                   \
  int cublas##L##gemv_v2(void *, int op, int m, int n, const T *alpha, const T *a, int lda, const T *x, int ix,       \
                         const T *beta, T *y, int iy) {                                                               \
    return l##gemv_(OPERATIONS + op, &m, &n, alpha, a, &lda, x, &ix, beta, y, &iy), 0;                                \
  }                                                                                                                   \
  int cublas##L##ger_v2(void *, int m, int n, const T *alpha, const T *x, int ix, const T *y, int iy, T *a,           \
                        int lda) {                                                                                    \
    return l##ger_(&m, &n, alpha, x, &ix, y, &iy, a, &lda), 0;                                                        \
  }                                                                                                                   \
  int cublas##L##gemm_v2(void *, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda,        \
                         const T *b, int ldb, const T *beta, T *c, int ldc) {                                         \
    return l##gemm_(OPERATIONS + op_a, OPERATIONS + op_b, &m, &n, &k, alpha, a, &lda, b, &ldb, beta, c, &ldc), 0;     \
  }                                                                                                                   \
  int cublas##L##gemmStridedBatched(void *handle, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a,\
                                    int lda, long long stride_a, const T *b, int ldb, long long stride_b,             \
                                    const T *beta, T *c, int ldc, long long stride_c, int count) {                    \
    for (int i = 0; i < count; i++)                                                                                   \
      cublas##L##gemm_v2(handle, op_a, op_b, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta,      \
                         c + i * stride_c, ldc);                                                                      \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublas##L##gemmBatched(void *handle, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *const *a,\
                             int lda, const T *const *b, int ldb, const T *beta, T *const *c, int ldc, int count) {   \
    for (int i = 0; i < count; i++)                                                                                   \
      cublas##L##gemm_v2(handle, op_a, op_b, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);                  \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublas##L##geam(void *, int op_a, int op_b, int m, int n, const T *alpha, const T *a, int lda, const T *beta,   \
                      const T *b, int ldb, T *c, int ldc) {                                                           \
    for (int j = 0; j < n; j++)                                                                                       \
      for (int i = 0; i < m; i++) {                                                                                   \
        T sum = 0;                                                                                                    \
        if (*alpha != 0) sum += *alpha * a[op_a ? (size_t)i * lda + j : (size_t)j * lda + i];                         \
        if (*beta != 0) sum += *beta * b[op_b ? (size_t)i * ldb + j : (size_t)j * ldb + i];                           \
        c[(size_t)j * ldc + i] = sum;                                                                                 \
      }                                                                                                               \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublasI##L##amax_v2(void *, int n, const T *x, int ix, int *result) { return extremum(n, x, ix, 1, result); }   \
  int cublasI##L##amin_v2(void *, int n, const T *x, int ix, int *result) { return extremum(n, x, ix, -1, result); }  \
  int cublas##L##trsm_v2(void *, int side, int triangle, int op, int diagonal, int m, int n, const T *alpha,          \
                         const T *a, int lda, T *b, int ldb) {                                                        \
    return l##trsm_(SIDES + side, TRIANGLES + triangle, OPERATIONS + op, DIAGONALS + diagonal, &m, &n, alpha, a,      \
                    &lda, b, &ldb), 0;                                                                                \
  }                                                                                                                   \
  int cublas##L##syrk_v2(void *, int triangle, int op, int n, int k, const T *alpha, const T *a, int lda,             \
                         const T *beta, T *c, int ldc) {                                                              \
    return l##syrk_(TRIANGLES + triangle, OPERATIONS + op, &n, &k, alpha, a, &lda, beta, c, &ldc), 0;                 \
  }                                                                                                                   \
  int cublas##L##symm_v2(void *, int side, int triangle, int m, int n, const T *alpha, const T *a, int lda,           \
                         const T *b, int ldb, const T *beta, T *c, int ldc) {                                         \
    return l##symm_(SIDES + side, TRIANGLES + triangle, &m, &n, alpha, a, &lda, b, &ldb, beta, c, &ldc), 0;           \
  }                                                                                                                   \
  int cublas##L##symv_v2(void *, int triangle, int n, const T *alpha, const T *a, int lda, const T *x, int ix,        \
                         const T *beta, T *y, int iy) {                                                               \
    return l##symv_(TRIANGLES + triangle, &n, alpha, a, &lda, x, &ix, beta, y, &iy), 0;                               \
  }                                                                                                                   \
  int cublas##L##trsv_v2(void *, int triangle, int op, int diagonal, int n, const T *a, int lda, T *x, int ix) {      \
    return l##trsv_(TRIANGLES + triangle, OPERATIONS + op, DIAGONALS + diagonal, &n, a, &lda, x, &ix), 0;             \
  }                                                                                                                   \
  int cublas##L##trmv_v2(void *, int triangle, int op, int diagonal, int n, const T *a, int lda, T *x, int ix) {      \
    return l##trmv_(TRIANGLES + triangle, OPERATIONS + op, DIAGONALS + diagonal, &n, a, &lda, x, &ix), 0;             \
  }                                                                                                                   \
  int cublas##L##getrfBatched(void *handle, int n, T *const *a, int lda, int *pivots, int *info, int count) {         \
    for (int i = 0; i < count; i++)                                                                                   \
      cusolverDn##L##getrf(handle, n, n, a[i], lda, nullptr, pivots ? pivots + i * n : pivots, info + i);             \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublas##L##getrsBatched(void *handle, int op, int n, int columns, const T *const *a, int lda, const int *pivots,\
                              T *const *b, int ldb, int *info, int count) {                                           \
    for (int i = 0; i < count; i++)                                                                                   \
      cusolverDn##L##getrs(handle, op, n, columns, a[i], lda, pivots ? pivots + i * n : pivots, b[i], ldb, info);     \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublas##L##getriBatched(void *handle, int n, const T *const *a, int lda, const int *pivots, T *const *inverse,  \
                              int ldc, int *info, int count) {                                                        \
    for (int i = 0; i < count; i++) {                                                                                 \
      for (int j = 0; j < n; j++)                                                                                     \
        for (int k = 0; k < n; k++) inverse[i][(size_t)j * ldc + k] = j == k;                                         \
      cublas##L##getrsBatched(handle, 0, n, n, a + i, lda, pivots ? pivots + i * n : pivots, inverse + i, ldc,        \
                              info + i, 1);                                                                           \
    }                                                                                                                 \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cublas##L##matinvBatched(void *handle, int n, const T *const *a, int lda, T *const *inverse, int ldc, int *info,\
                               int count) {                                                                           \
    T *held = new T[(size_t)n * n];                                                                                   \
    int *pivots = new int[n], state;                                                                                  \
    for (int i = 0; i < count; i++) {                                                                                 \
      for (int j = 0; j < n; j++)                                                                                     \
        for (int k = 0; k < n; k++) held[(size_t)j * n + k] = a[i][(size_t)j * lda + k];                              \
      cusolverDn##L##getrf(handle, n, n, held, n, nullptr, pivots, info + i);                                         \
      const T *given = held;                                                                                          \
      cublas##L##getriBatched(handle, n, &given, n, pivots, inverse + i, ldc, &state, 1);                             \
    }                                                                                                                 \
    delete[] held;                                                                                                    \
    delete[] pivots;                                                                                                  \
    return 0;                                                                                                         \
  }
DEFINE(S, s, float)
DEFINE(D, d, double)

}  // extern "C"
