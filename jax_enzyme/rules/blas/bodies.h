/* Routines in terms of others, under Fortran's names: put into kernels that call them, like the C interface. */

/* A += alpha x x^T and A += alpha (x y^T + y x^T), a triangle, as products of matrices of one column. */

/* The numbers of a vector one after the other; to be freed. */
static SCALAR *OF(packed)(int n, const SCALAR *x, int inc) {
  SCALAR *to = OF(new)(n);
  OF(pack)(n, x, inc, to);
  return to;
}

#ifdef COMPLEX

void BLAS(her)(const char *uplo, const int *n, const REAL *alpha, const SCALAR *x, const int *incx, SCALAR *a,
               const int *lda) {
  int ld = je_at_least_one(*n);
  SCALAR *u = OF(packed)(*n, x, *incx);
  BLAS(herk)(uplo, &je_as_it_is, n, &je_one_int, alpha, u, &ld, &OF(real_one), a, lda);
  free(u);
}

void BLAS(her2)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, const SCALAR *y,
                const int *incy, SCALAR *a, const int *lda) {
  int ld = je_at_least_one(*n);
  SCALAR *u = OF(packed)(*n, x, *incx), *v = OF(packed)(*n, y, *incy);
  BLAS(her2k)(uplo, &je_as_it_is, n, &je_one_int, alpha, u, &ld, v, &ld, &OF(real_one), a, lda);
  free(u);
  free(v);
}

void BLAS(gemm3m)(const char *transa, const char *transb, const int *m, const int *n, const int *k, const SCALAR *alpha,
                  const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta, SCALAR *c,
                  const int *ldc) {
  BLAS(gemm)(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* By rows, a Hermitian matrix is the conjugate of what is stored by columns. */
void JOIN3(cblas_, LETTER, her)(int order, int uplo, int n, REAL alpha, const void *x, int incx, void *a, int lda) {
  char triangle = je_triangle(order, uplo);
  SCALAR *u = OF(packed)(n, x, incx);
  if (order != JE_BY_COLUMNS) OF(conjugate)(n, u, 1);
  BLAS(her)(&triangle, &n, &alpha, u, &je_one_int, a, &lda);
  free(u);
}

void JOIN3(cblas_, LETTER, her2)(int order, int uplo, int n, const void *alpha, const void *x, int incx, const void *y,
                                 int incy, void *a, int lda) {
  char triangle = je_triangle(order, uplo);
  SCALAR *u = OF(packed)(n, x, incx), *v = OF(packed)(n, y, incy);
  if (order != JE_BY_COLUMNS) {
    OF(conjugate)(n, u, 1);
    OF(conjugate)(n, v, 1);
    BLAS(her2)(&triangle, &n, alpha, v, &je_one_int, u, &je_one_int, a, &lda);
  } else {
    BLAS(her2)(&triangle, &n, alpha, u, &je_one_int, v, &je_one_int, a, &lda);
  }
  free(u);
  free(v);
}

#else

void BLAS(syr)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, SCALAR *a,
               const int *lda) {
  int ld = je_at_least_one(*n);
  SCALAR *u = OF(packed)(*n, x, *incx);
  BLAS(syrk)(uplo, &je_as_it_is, n, &je_one_int, alpha, u, &ld, &OF(one), a, lda);
  free(u);
}

void BLAS(syr2)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, const SCALAR *y,
                const int *incy, SCALAR *a, const int *lda) {
  int ld = je_at_least_one(*n);
  SCALAR *u = OF(packed)(*n, x, *incx), *v = OF(packed)(*n, y, *incy);
  BLAS(syr2k)(uplo, &je_as_it_is, n, &je_one_int, alpha, u, &ld, v, &ld, &OF(one), a, lda);
  free(u);
  free(v);
}

void JOIN3(cblas_, LETTER, syr)(int order, int uplo, int n, SCALAR alpha, const SCALAR *x, int incx, SCALAR *a,
                                int lda) {
  char triangle = je_triangle(order, uplo);
  BLAS(syr)(&triangle, &n, &alpha, x, &incx, a, &lda);
}

void JOIN3(cblas_, LETTER, syr2)(int order, int uplo, int n, SCALAR alpha, const SCALAR *x, int incx, const SCALAR *y,
                                 int incy, SCALAR *a, int lda) {
  char triangle = je_triangle(order, uplo);
  BLAS(syr2)(&triangle, &n, &alpha, x, &incx, y, &incy, a, &lda);
}

#endif

/* Sums of products of floats, in double precision. */
#ifdef SINGLE

double dsdot_(const int *n, const float *x, const int *incx, const float *y, const int *incy) {
  double sum = 0;
  index_t i = je_start(*n, *incx), j = je_start(*n, *incy);
  for (int k = 0; k < *n; k++, i += *incx, j += *incy) sum += (double)x[i] * (double)y[j];
  return sum;
}

float sdsdot_(const int *n, const float *b, const float *x, const int *incx, const float *y, const int *incy) {
  return (float)(*b + dsdot_(n, x, incx, y, incy));
}

double cblas_dsdot(int n, const float *x, int incx, const float *y, int incy) {
  return dsdot_(&n, x, &incx, y, &incy);
}

float cblas_sdsdot(int n, float b, const float *x, int incx, const float *y, int incy) {
  return sdsdot_(&n, &b, x, &incx, y, &incy);
}

#endif

/* The solution of A X = B by the factorisation of Cholesky. */
void BLAS(posv)(const char *uplo, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                int *info) {
  BLAS(potrf)(uplo, n, a, lda, info);
  if (*info == 0) BLAS(potrs)(uplo, n, nrhs, a, lda, b, ldb, info);
}
