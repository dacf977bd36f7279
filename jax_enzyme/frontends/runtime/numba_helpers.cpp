// Numba's calls of BLAS and of its helpers in C, under the names by which its code calls them.
// provides: numba_xx(dot|gemv|gemm|nrm2) numba_attempt_nocopy_reshape numba_fatal_error
#include "numba_object.h"

extern "C" {

float sdot_(const int *, const float *, const int *, const float *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *, const float *, const int *,
            const float *, float *, const int *);
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *,
            const int *, const double *, double *, const int *);
void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
            const float *, const int *, const float *, float *, const int *);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
float snrm2_(const int *, const float *, const int *);
double dnrm2_(const int *, const double *, const int *);
int numba_blas_of_complex_numbers(void);

int numba_xxdot(char kind, char, i64 n, const void *x, const void *y, void *result) {
  const int count = static_cast<int>(n), one = 1;
  if (kind == 'd')
    *static_cast<double *>(result) =
        ddot_(&count, static_cast<const double *>(x), &one, static_cast<const double *>(y), &one);
  else if (kind == 's')
    *static_cast<float *>(result) =
        sdot_(&count, static_cast<const float *>(x), &one, static_cast<const float *>(y), &one);
  else return numba_blas_of_complex_numbers();
  return 0;
}

int numba_xxgemv(char kind, char transpose, i64 m, i64 n, const void *alpha, const void *a, i64 lda, const void *x,
                 const void *beta, void *y) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda), one = 1;
  if (kind == 'd')
    dgemv_(&transpose, &rows, &columns, static_cast<const double *>(alpha), static_cast<const double *>(a), &leading,
           static_cast<const double *>(x), &one, static_cast<const double *>(beta), static_cast<double *>(y), &one);
  else if (kind == 's')
    sgemv_(&transpose, &rows, &columns, static_cast<const float *>(alpha), static_cast<const float *>(a), &leading,
           static_cast<const float *>(x), &one, static_cast<const float *>(beta), static_cast<float *>(y), &one);
  else return numba_blas_of_complex_numbers();
  return 0;
}

int numba_xxgemm(char kind, char transpose_a, char transpose_b, i64 m, i64 n, i64 k, const void *alpha, const void *a,
                 i64 lda, const void *b, i64 ldb, const void *beta, void *c, i64 ldc) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  const int of_a = static_cast<int>(lda), of_b = static_cast<int>(ldb), of_c = static_cast<int>(ldc);
  if (kind == 'd')
    dgemm_(&transpose_a, &transpose_b, &rows, &columns, &inner, static_cast<const double *>(alpha),
           static_cast<const double *>(a), &of_a, static_cast<const double *>(b), &of_b,
           static_cast<const double *>(beta), static_cast<double *>(c), &of_c);
  else if (kind == 's')
    sgemm_(&transpose_a, &transpose_b, &rows, &columns, &inner, static_cast<const float *>(alpha),
           static_cast<const float *>(a), &of_a, static_cast<const float *>(b), &of_b,
           static_cast<const float *>(beta), static_cast<float *>(c), &of_c);
  else return numba_blas_of_complex_numbers();
  return 0;
}

int numba_xxnrm2(char kind, i64 n, const void *x, i64 step, void *result) {
  const int count = static_cast<int>(n), stride = static_cast<int>(step);
  if (kind == 'd') *static_cast<double *>(result) = dnrm2_(&count, static_cast<const double *>(x), &stride);
  else if (kind == 's') *static_cast<float *>(result) = snrm2_(&count, static_cast<const float *>(x), &stride);
  else return numba_blas_of_complex_numbers();
  return 0;
}

int numba_fatal_error(void) { __builtin_abort(); }

// The strides of a contiguous array in another shape; 0 (a copy is needed) for any other array.
int numba_attempt_nocopy_reshape(i64 rank, const i64 *extents, const i64 *strides, i64 new_rank, const i64 *new_extents,
                                 i64 *new_strides, i64 bytes, int column_major) {
  i64 stride = bytes;
  for (i64 k = 0; k < rank; ++k) {
    const i64 axis = column_major ? k : rank - 1 - k;
    if (extents[axis] != 1 && strides[axis] != stride) return 0;
    stride *= extents[axis];
  }
  stride = bytes;
  for (i64 k = 0; k < new_rank; ++k) {
    const i64 axis = column_major ? k : new_rank - 1 - k;
    new_strides[axis] = stride;
    stride *= new_extents[axis];
  }
  return 1;
}

}  // extern "C"
