// Numba's calls of BLAS, under the names by which its code calls them.
// provides: numba_xx(dot|gemv|gemm|nrm2)
#include "numba_kinds.h"

#define DECLARE(T, l)                                                                                              \
  extern "C" void l##gemv_(const char *, const int *, const int *, const T *, const T *, const int *, const T *,   \
                           const int *, const T *, T *, const int *);                                              \
  extern "C" void l##gemm_(const char *, const char *, const int *, const int *, const int *, const T *, const T *, \
                           const int *, const T *, const int *, const T *, T *, const int *);                      \
  static inline void gemv(const char *t, const int *m, const int *n, const T *alpha, const T *a, const int *lda,   \
                          const T *x, const int *one, const T *beta, T *y) {                                       \
    l##gemv_(t, m, n, alpha, a, lda, x, one, beta, y, one);                                                        \
  }                                                                                                                \
  static inline void gemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const T *alpha, \
                          const T *a, const int *lda, const T *b, const int *ldb, const T *beta, T *c,             \
                          const int *ldc) {                                                                        \
    l##gemm_(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                \
  }
EACH_KIND(DECLARE)

extern "C" {

float sdot_(const int *, const float *, const int *, const float *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
void cblas_cdotu_sub(int, const void *, int, const void *, int, void *);
void cblas_zdotu_sub(int, const void *, int, const void *, int, void *);
void cblas_cdotc_sub(int, const void *, int, const void *, int, void *);
void cblas_zdotc_sub(int, const void *, int, const void *, int, void *);
float snrm2_(const int *, const float *, const int *);
double dnrm2_(const int *, const double *, const int *);
float scnrm2_(const int *, const void *, const int *);
double dznrm2_(const int *, const void *, const int *);

int numba_xxdot(char kind, char conjugate, i64 n, const void *x, const void *y, void *result) {
  const int count = static_cast<int>(n), one = 1;
  switch (kind) {
    case 's':
      *static_cast<float *>(result) =
          sdot_(&count, static_cast<const float *>(x), &one, static_cast<const float *>(y), &one);
      break;
    case 'd':
      *static_cast<double *>(result) =
          ddot_(&count, static_cast<const double *>(x), &one, static_cast<const double *>(y), &one);
      break;
    case 'c':
      if (conjugate) cblas_cdotc_sub(count, x, 1, y, 1, result);
      else cblas_cdotu_sub(count, x, 1, y, 1, result);
      break;
    default:
      if (conjugate) cblas_zdotc_sub(count, x, 1, y, 1, result);
      else cblas_zdotu_sub(count, x, 1, y, 1, result);
  }
  return 0;
}

int numba_xxgemv(char kind, char transpose, i64 m, i64 n, const void *alpha, const void *a, i64 lda, const void *x,
                 const void *beta, void *y) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda), one = 1;
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    gemv(&transpose, &rows, &columns, static_cast<const T *>(alpha), static_cast<const T *>(a), &leading,
         static_cast<const T *>(x), &one, static_cast<const T *>(beta), static_cast<T *>(y));
    return 0;
  });
}

int numba_xxgemm(char kind, char transpose_a, char transpose_b, i64 m, i64 n, i64 k, const void *alpha, const void *a,
                 i64 lda, const void *b, i64 ldb, const void *beta, void *c, i64 ldc) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  const int of_a = static_cast<int>(lda), of_b = static_cast<int>(ldb), of_c = static_cast<int>(ldc);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    gemm(&transpose_a, &transpose_b, &rows, &columns, &inner, static_cast<const T *>(alpha), static_cast<const T *>(a),
         &of_a, static_cast<const T *>(b), &of_b, static_cast<const T *>(beta), static_cast<T *>(c), &of_c);
    return 0;
  });
}

int numba_xxnrm2(char kind, i64 n, const void *x, i64 step, void *result) {
  const int count = static_cast<int>(n), stride = static_cast<int>(step);
  switch (kind) {
    case 's': *static_cast<float *>(result) = snrm2_(&count, static_cast<const float *>(x), &stride); break;
    case 'd': *static_cast<double *>(result) = dnrm2_(&count, static_cast<const double *>(x), &stride); break;
    case 'c': *static_cast<float *>(result) = scnrm2_(&count, x, &stride); break;
    default: *static_cast<double *>(result) = dznrm2_(&count, x, &stride);
  }
  return 0;
}

}  // extern "C"
