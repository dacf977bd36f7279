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

double cblas_dsdot(int n, const float *x, int incx, const float *y, int incy) { return dsdot_(&n, x, &incx, y, &incy); }

float cblas_sdsdot(int n, float b, const float *x, int incx, const float *y, int incy) {
  return sdsdot_(&n, &b, x, &incx, y, &incy);
}

#endif

/* The solution of A X = B by the factorisation of Cholesky, and of banded matrices. */
void BLAS(posv)(const char *uplo, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                int *info) {
  BLAS(potrf)(uplo, n, a, lda, info);
  if (*info == 0) BLAS(potrs)(uplo, n, nrhs, a, lda, b, ldb, info);
}

void BLAS(pbsv)(const char *uplo, const int *n, const int *kd, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b,
                const int *ldb, int *info) {
  BLAS(pbtrf)(uplo, n, kd, a, lda, info);
  if (*info == 0) BLAS(pbtrs)(uplo, n, kd, nrhs, a, lda, b, ldb, info);
}

void BLAS(gbsv)(const int *n, const int *kl, const int *ku, const int *nrhs, SCALAR *a, const int *lda, int *ipiv,
                SCALAR *b, const int *ldb, int *info) {
  BLAS(gbtrf)(n, n, kl, ku, a, lda, ipiv, info);
  if (*info == 0) BLAS(gbtrs)(&je_as_it_is, n, kl, ku, nrhs, a, lda, ipiv, b, ldb, info);
}

/* The size by which pivots are chosen. */
static inline REAL OF(magnitude)(SCALAR x) {
#ifdef COMPLEX
  return (REAL)__builtin_fabs(__real__(x)) + (REAL)__builtin_fabs(__imag__(x));
#else
  return (REAL)__builtin_fabs(x);
#endif
}

/* Tridiagonal matrices: their eliminations are loops over three vectors, and are differentiated as these. */

void BLAS(gttrf)(const int *n, SCALAR *dl, SCALAR *d, SCALAR *du, SCALAR *du2, int *ipiv, int *info) {
  *info = *n < 0 ? -1 : 0;
  for (int i = 0; i < *n; i++) ipiv[i] = i + 1;
  for (int i = 0; i + 2 < *n; i++) du2[i] = 0;
  for (int i = 0; i + 1 < *n; i++) {
    if (OF(magnitude)(d[i]) >= OF(magnitude)(dl[i])) {
      if (d[i] == 0) continue;
      dl[i] /= d[i];
      d[i + 1] -= dl[i] * du[i];
      continue;
    }
    SCALAR factor = d[i] / dl[i], above = du[i];
    d[i] = dl[i], dl[i] = factor, du[i] = d[i + 1], d[i + 1] = above - factor * du[i];
    if (i + 2 < *n) {
      du2[i] = du[i + 1];
      du[i + 1] = -factor * du[i + 1];
    }
    ipiv[i] = i + 2;
  }
  for (int i = 0; i < *n && *info == 0; i++)
    if (d[i] == 0) *info = i + 1;
}

void BLAS(gttrs)(const char *trans, const int *n, const int *nrhs, const SCALAR *dl, const SCALAR *d, const SCALAR *du,
                 const SCALAR *du2, const int *ipiv, SCALAR *b, const int *ldb, int *info) {
  char op = OF(operation)(trans);
  int turned = op != 'N', size = *n;
  *info = 0;
  for (int r = 0; r < *nrhs; r++) {
    SCALAR *x = b + (index_t)r * *ldb;
    for (int i = 0; !turned && i + 1 < size; i++) {
      SCALAR first = ipiv[i] == i + 1 ? x[i] : x[i + 1], second = ipiv[i] == i + 1 ? x[i + 1] : x[i];
      x[i] = first, x[i + 1] = second - dl[i] * first;
    }
    for (int step = 0; step < size; step++) {
      int i = turned ? step : size - 1 - step;
      SCALAR sum = x[i];
      if (turned) {
        if (i > 0) sum -= WITH(op, du[i - 1]) * x[i - 1];
        if (i > 1) sum -= WITH(op, du2[i - 2]) * x[i - 2];
      } else {
        if (i + 1 < size) sum -= du[i] * x[i + 1];
        if (i + 2 < size) sum -= du2[i] * x[i + 2];
      }
      x[i] = sum / WITH(op, d[i]);
    }
    for (int i = size - 2; turned && i >= 0; i--) {
      SCALAR first = x[i] - WITH(op, dl[i]) * x[i + 1], second = x[i + 1];
      x[i] = ipiv[i] == i + 1 ? first : second, x[i + 1] = ipiv[i] == i + 1 ? second : first;
    }
  }
}

/* The second diagonal above the main one is left in dl, as LAPACK has it. */
void BLAS(gtsv)(const int *n, const int *nrhs, SCALAR *dl, SCALAR *d, SCALAR *du, SCALAR *b, const int *ldb,
                int *info) {
  int size = *n;
  *info = 0;
  for (int i = 0; i + 1 < size; i++) {
    if (OF(magnitude)(d[i]) >= OF(magnitude)(dl[i])) {
      if (d[i] == 0) {
        *info = i + 1;
        return;
      }
      SCALAR factor = dl[i] / d[i];
      d[i + 1] -= factor * du[i];
      for (index_t r = 0; r < *nrhs; r++) b[i + 1 + r * *ldb] -= factor * b[i + r * *ldb];
      if (i + 2 < size) dl[i] = 0;
      continue;
    }
    SCALAR factor = d[i] / dl[i], below = d[i + 1];
    d[i] = dl[i], d[i + 1] = du[i] - factor * below, du[i] = below;
    if (i + 2 < size) {
      dl[i] = du[i + 1];
      du[i + 1] = -factor * du[i + 1];
    }
    for (index_t r = 0; r < *nrhs; r++) {
      SCALAR *x = b + i + r * *ldb, first = x[0];
      x[0] = x[1], x[1] = first - factor * x[1];
    }
  }
  if (size > 0 && d[size - 1] == 0) {
    *info = size;
    return;
  }
  for (index_t r = 0; r < *nrhs; r++)
    for (int i = size - 1; i >= 0; i--) {
      SCALAR *x = b + r * *ldb, sum = x[i];
      if (i + 1 < size) sum -= du[i] * x[i + 1];
      if (i + 2 < size) sum -= dl[i] * x[i + 2];
      x[i] = sum / d[i];
    }
}

/* L D L^H of a positive definite matrix. */
void BLAS(pttrf)(const int *n, REAL *d, SCALAR *e, int *info) {
  *info = 0;
  for (int i = 0; i < *n; i++) {
    if (d[i] <= 0) {
      *info = i + 1;
      return;
    }
    if (i + 1 < *n) {
      SCALAR old = e[i];
      e[i] = old / d[i];
      d[i + 1] -= REAL_PART(e[i] * CONJ(old));
    }
  }
}

/* `upper`: e lies above the diagonal of the conjugate of L. */
static void OF(tridiagonal_solution)(int upper, int n, int nrhs, const REAL *d, const SCALAR *e, SCALAR *b, int ldb) {
  char lower_op = upper ? 'C' : 'N', upper_op = upper ? 'N' : 'C';
  for (index_t r = 0; r < nrhs; r++) {
    SCALAR *x = b + r * ldb;
    for (int i = 1; i < n; i++) x[i] -= x[i - 1] * WITH(lower_op, e[i - 1]);
    for (int i = n - 1; i >= 0; i--) x[i] = i + 1 < n ? x[i] / d[i] - x[i + 1] * WITH(upper_op, e[i]) : x[i] / d[i];
  }
}

#ifdef COMPLEX
void BLAS(pttrs)(const char *uplo, const int *n, const int *nrhs, const REAL *d, const SCALAR *e, SCALAR *b,
                 const int *ldb, int *info) {
  *info = 0;
  OF(tridiagonal_solution)(je_upper(uplo) == 'U', *n, *nrhs, d, e, b, *ldb);
}
#else
void BLAS(pttrs)(const int *n, const int *nrhs, const SCALAR *d, const SCALAR *e, SCALAR *b, const int *ldb,
                 int *info) {
  *info = 0;
  OF(tridiagonal_solution)(0, *n, *nrhs, d, e, b, *ldb);
}
#endif

void BLAS(ptsv)(const int *n, const int *nrhs, REAL *d, SCALAR *e, SCALAR *b, const int *ldb, int *info) {
  BLAS(pttrf)(n, d, e, info);
  if (*info == 0) OF(tridiagonal_solution)(0, *n, *nrhs, d, e, b, *ldb);
}
