/* Products and solutions with bands and packed triangles, as loops over what is stored: put into kernels that call them
   and differentiated as code. No branch depends on the value of a number but `beta`, of which zero means that the old
   contents do not count. */

static SCALAR *OF(packed)(int n, const SCALAR *x, int inc);

static void OF(unpack)(int n, const SCALAR *from, SCALAR *x, int inc) {
  index_t start = je_start(n, inc);
  for (int i = 0; i < n; i++) x[start + (index_t)i * inc] = from[i];
}

/* Where a triangle of k diagonals beside the main one has entry (i, j): in columns of `lda`, or packed if that is 0. */
static inline index_t OF(stored)(char uplo, int n, int k, int lda, int i, int j) {
  if (lda == 0) return uplo == 'U' ? i + (index_t)j * (j + 1) / 2 : i + (index_t)j * (2 * (index_t)n - j - 1) / 2;
  return (uplo == 'U' ? k + i - j : i - j) + (index_t)j * lda;
}

/* The rows of column j off the diagonal. */
static inline int OF(first_stored)(char uplo, int k, int j) { return uplo == 'U' ? OF(first_in_band)(k, j) : j + 1; }

static inline int OF(end_stored)(char uplo, int n, int k, int j) {
  return uplo == 'U' ? j : k < n - 1 - j ? j + k + 1 : n;
}

void BLAS(gbmv)(const char *trans, const int *m, const int *n, const int *kl, const int *ku, const SCALAR *alpha,
                const SCALAR *a, const int *lda, const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y,
                const int *incy) {
  char op = OF(operation)(trans);
  int rows = op == 'N' ? *m : *n, columns = op == 'N' ? *n : *m;
  index_t from = je_start(columns, *incx), to = je_start(rows, *incy);
  OF(scale)(rows, *beta, y, *incy);
  for (int j = 0; j < *n; j++)
    for (int i = OF(first_in_band)(*ku, j); i < OF(least)(j + *kl + 1, *m); i++) {
      index_t row = op == 'N' ? i : j, column = op == 'N' ? j : i;
      y[to + row * *incy] += *alpha * WITH(op, a[*ku + i - j + (index_t)j * *lda]) * x[from + column * *incx];
    }
}

/* y = alpha A x + beta y, A symmetric or Hermitian. */
static void OF(symmetric_product)(char uplo, int n, int k, SCALAR alpha, const SCALAR *a, int lda, const SCALAR *x,
                                  int incx, SCALAR beta, SCALAR *y, int incy) {
  index_t from = je_start(n, incx), to = je_start(n, incy);
  OF(scale)(n, beta, y, incy);
  for (int j = 0; j < n; j++) {
    y[to + (index_t)j * incy] += alpha * REAL_PART(a[OF(stored)(uplo, n, k, lda, j, j)]) * x[from + (index_t)j * incx];
    for (int i = OF(first_stored)(uplo, k, j); i < OF(end_stored)(uplo, n, k, j); i++) {
      SCALAR entry = a[OF(stored)(uplo, n, k, lda, i, j)];
      y[to + (index_t)i * incy] += alpha * entry * x[from + (index_t)j * incx];
      y[to + (index_t)j * incy] += alpha * CONJ(entry) * x[from + (index_t)i * incx];
    }
  }
}

#ifdef COMPLEX
#define SYMMETRIC(kind, name) BLAS(JOIN3(h, kind, name))
#else
#define SYMMETRIC(kind, name) BLAS(JOIN3(s, kind, name))
#endif

void SYMMETRIC(b, mv)(const char *uplo, const int *n, const int *k, const SCALAR *alpha, const SCALAR *a,
                      const int *lda, const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y,
                      const int *incy) {
  OF(symmetric_product)(je_upper(uplo), *n, *k, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}

void SYMMETRIC(p, mv)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *a, const SCALAR *x,
                      const int *incx, const SCALAR *beta, SCALAR *y, const int *incy) {
  OF(symmetric_product)(je_upper(uplo), *n, *n, *alpha, a, 0, x, *incx, *beta, y, *incy);
}

#ifndef COMPLEX

void BLAS(spr)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, SCALAR *a) {
  char part = je_upper(uplo);
  SCALAR *u = OF(packed)(*n, x, *incx);
  for (int j = 0; j < *n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, *n); i++)
      a[OF(stored)(part, *n, *n, 0, i, j)] += *alpha * u[i] * u[j];
  free(u);
}

void BLAS(spr2)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, const SCALAR *y,
                const int *incy, SCALAR *a) {
  char part = je_upper(uplo);
  SCALAR *u = OF(packed)(*n, x, *incx), *v = OF(packed)(*n, y, *incy);
  for (int j = 0; j < *n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, *n); i++)
      a[OF(stored)(part, *n, *n, 0, i, j)] += *alpha * (u[i] * v[j] + v[i] * u[j]);
  free(u);
  free(v);
}

#endif

static void OF(stored_product)(char uplo, char op, char diag, int n, int k, const SCALAR *a, int lda, SCALAR *x,
                               int incx) {
  SCALAR *u = OF(packed)(n, x, incx), *v = OF(packed)(n, x, incx);
  for (int j = 0; j < n; j++)
    if (diag != 'U') v[j] = WITH(op, a[OF(stored)(uplo, n, k, lda, j, j)]) * u[j];
  for (int j = 0; j < n; j++)
    for (int i = OF(first_stored)(uplo, k, j); i < OF(end_stored)(uplo, n, k, j); i++)
      v[op == 'N' ? i : j] += WITH(op, a[OF(stored)(uplo, n, k, lda, i, j)]) * u[op == 'N' ? j : i];
  OF(unpack)(n, v, x, incx);
  free(u);
  free(v);
}

static void OF(stored_solve)(char uplo, char op, char diag, int n, int k, const SCALAR *a, int lda, SCALAR *x,
                             int incx) {
  SCALAR *u = OF(packed)(n, x, incx);
  for (int step = 0; step < n; step++) {
    int j = (uplo == 'L') == (op == 'N') ? step : n - 1 - step;
    if (op == 'N' && diag != 'U') u[j] /= a[OF(stored)(uplo, n, k, lda, j, j)];
    for (int i = OF(first_stored)(uplo, k, j); i < OF(end_stored)(uplo, n, k, j); i++)
      u[op == 'N' ? i : j] -= WITH(op, a[OF(stored)(uplo, n, k, lda, i, j)]) * u[op == 'N' ? j : i];
    if (op != 'N' && diag != 'U') u[j] /= WITH(op, a[OF(stored)(uplo, n, k, lda, j, j)]);
  }
  OF(unpack)(n, u, x, incx);
  free(u);
}

void BLAS(tbmv)(const char *uplo, const char *trans, const char *diag, const int *n, const int *k, const SCALAR *a,
                const int *lda, SCALAR *x, const int *incx) {
  OF(stored_product)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *k, a, *lda, x, *incx);
}

void BLAS(tbsv)(const char *uplo, const char *trans, const char *diag, const int *n, const int *k, const SCALAR *a,
                const int *lda, SCALAR *x, const int *incx) {
  OF(stored_solve)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *k, a, *lda, x, *incx);
}

void BLAS(tpmv)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a, SCALAR *x,
                const int *incx) {
  OF(stored_product)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *n, a, 0, x, *incx);
}

void BLAS(tpsv)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a, SCALAR *x,
                const int *incx) {
  OF(stored_solve)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *n, a, 0, x, *incx);
}

/* Systems with several right-hand sides. `info` is the first zero of the diagonal: nothing is solved then. */
static void OF(stored_system)(char uplo, char op, char diag, int n, int k, int nrhs, const SCALAR *a, int lda,
                              SCALAR *b, int ldb, int *info) {
  *info = 0;
  for (int j = 0; diag != 'U' && j < n; j++)
    if (a[OF(stored)(uplo, n, k, lda, j, j)] == 0) {
      *info = j + 1;
      return;
    }
  for (index_t r = 0; r < nrhs; r++) OF(stored_solve)(uplo, op, diag, n, k, a, lda, b + r * ldb, 1);
}

void BLAS(tbtrs)(const char *uplo, const char *trans, const char *diag, const int *n, const int *kd, const int *nrhs,
                 const SCALAR *a, const int *lda, SCALAR *b, const int *ldb, int *info) {
  OF(stored_system)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *kd, *nrhs, a, *lda, b, *ldb, info);
}

void BLAS(tptrs)(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs, const SCALAR *a,
                 SCALAR *b, const int *ldb, int *info) {
  OF(stored_system)(je_upper(uplo), OF(operation)(trans), je_upper(diag), *n, *n, *nrhs, a, 0, b, *ldb, info);
}

/* Where entry (i, j) is below the diagonal, or its conjugate above. */
static inline index_t OF(in_triangle)(char uplo, int n, int i, int j) {
  return uplo == 'U' ? OF(stored)('U', n, n, 0, j, i) : OF(stored)('L', n, n, 0, i, j);
}

/* The factorisation of Cholesky of a packed triangle: column j of L, or row j of its conjugate, and what it leaves. */
void BLAS(pptrf)(const char *uplo, const int *n, SCALAR *a, int *info) {
  char part = je_upper(uplo);
  *info = 0;
  for (int j = 0; j < *n; j++) {
    SCALAR *own = a + OF(stored)(part, *n, *n, 0, j, j);
    REAL pivot = REAL_PART(*own);
    if (!(pivot > 0)) {
      *info = j + 1;
      return;
    }
    *own = pivot = (REAL)__builtin_sqrt(pivot);
    for (int i = j + 1; i < *n; i++) a[OF(in_triangle)(part, *n, i, j)] /= pivot;
    for (int k = j + 1; k < *n; k++)
      for (int i = k; i < *n; i++)
        a[OF(in_triangle)(part, *n, i, k)] -=
            a[OF(in_triangle)(part, *n, i, j)] * CONJ(a[OF(in_triangle)(part, *n, k, j)]);
  }
}

void BLAS(pptrs)(const char *uplo, const int *n, const int *nrhs, const SCALAR *a, SCALAR *b, const int *ldb,
                 int *info) {
  char part = je_upper(uplo);
  *info = 0;
  for (index_t r = 0; r < *nrhs; r++) {
    OF(stored_solve)(part, part == 'U' ? 'C' : 'N', 'N', *n, *n, a, 0, b + r * *ldb, 1);
    OF(stored_solve)(part, part == 'U' ? 'N' : 'C', 'N', *n, *n, a, 0, b + r * *ldb, 1);
  }
}

void BLAS(ppsv)(const char *uplo, const int *n, const int *nrhs, SCALAR *a, SCALAR *b, const int *ldb, int *info) {
  BLAS(pptrf)(uplo, n, a, info);
  if (*info == 0) BLAS(pptrs)(uplo, n, nrhs, a, b, ldb, info);
}

/* The C interface, of real numbers. */
#ifndef COMPLEX

void CBLAS(gbmv)(int order, int trans, int m, int n, int kl, int ku, SCALAR alpha, const SCALAR *a, int lda,
                 const SCALAR *x, int incx, SCALAR beta, SCALAR *y, int incy) {
  char op = je_real_operation(order, trans);
  if (order == JE_BY_COLUMNS)
    BLAS(gbmv)(&op, &m, &n, &kl, &ku, &alpha, a, &lda, x, &incx, &beta, y, &incy);
  else
    BLAS(gbmv)(&op, &n, &m, &ku, &kl, &alpha, a, &lda, x, &incx, &beta, y, &incy);
}

void CBLAS(sbmv)(int order, int uplo, int n, int k, SCALAR alpha, const SCALAR *a, int lda, const SCALAR *x, int incx,
                 SCALAR beta, SCALAR *y, int incy) {
  OF(symmetric_product)(je_triangle(order, uplo), n, k, alpha, a, lda, x, incx, beta, y, incy);
}

void CBLAS(spmv)(int order, int uplo, int n, SCALAR alpha, const SCALAR *a, const SCALAR *x, int incx, SCALAR beta,
                 SCALAR *y, int incy) {
  OF(symmetric_product)(je_triangle(order, uplo), n, n, alpha, a, 0, x, incx, beta, y, incy);
}

void CBLAS(spr)(int order, int uplo, int n, SCALAR alpha, const SCALAR *x, int incx, SCALAR *a) {
  char triangle = je_triangle(order, uplo);
  BLAS(spr)(&triangle, &n, &alpha, x, &incx, a);
}

void CBLAS(spr2)(int order, int uplo, int n, SCALAR alpha, const SCALAR *x, int incx, const SCALAR *y, int incy,
                 SCALAR *a) {
  char triangle = je_triangle(order, uplo);
  BLAS(spr2)(&triangle, &n, &alpha, x, &incx, y, &incy, a);
}

void CBLAS(tbmv)(int order, int uplo, int trans, int diag, int n, int k, const SCALAR *a, int lda, SCALAR *x,
                 int incx) {
  OF(stored_product)(je_triangle(order, uplo), je_real_operation(order, trans), je_diagonal(diag), n, k, a, lda, x,
                     incx);
}

void CBLAS(tbsv)(int order, int uplo, int trans, int diag, int n, int k, const SCALAR *a, int lda, SCALAR *x,
                 int incx) {
  OF(stored_solve)(je_triangle(order, uplo), je_real_operation(order, trans), je_diagonal(diag), n, k, a, lda, x, incx);
}

void CBLAS(tpmv)(int order, int uplo, int trans, int diag, int n, const SCALAR *a, SCALAR *x, int incx) {
  OF(stored_product)(je_triangle(order, uplo), je_real_operation(order, trans), je_diagonal(diag), n, n, a, 0, x, incx);
}

void CBLAS(tpsv)(int order, int uplo, int trans, int diag, int n, const SCALAR *a, SCALAR *x, int incx) {
  OF(stored_solve)(je_triangle(order, uplo), je_real_operation(order, trans), je_diagonal(diag), n, n, a, 0, x, incx);
}

#endif
