/* The C interface, in terms of the Fortran one: a matrix stored by rows is its transpose stored by columns. These
   bodies are put into kernels that call them, and are differentiated like the kernel's own code. */

#define CBLAS(name) JOIN3(cblas_, LETTER, name)

#ifdef COMPLEX
#define BY_VALUE const void *
#define AT(alpha) ((const SCALAR *)(alpha))
#define NUMBERS void *
#else
#define BY_VALUE SCALAR
#define AT(alpha) (&(alpha))
#define NUMBERS SCALAR *
#endif

void CBLAS(axpy)(int n, BY_VALUE alpha, const NUMBERS x, int incx, NUMBERS y, int incy) {
  BLAS(axpy)(&n, AT(alpha), x, &incx, y, &incy);
}

void CBLAS(scal)(int n, BY_VALUE alpha, NUMBERS x, int incx) { BLAS(scal)(&n, AT(alpha), x, &incx); }

void CBLAS(copy)(int n, const NUMBERS x, int incx, NUMBERS y, int incy) { BLAS(copy)(&n, x, &incx, y, &incy); }

void CBLAS(swap)(int n, NUMBERS x, int incx, NUMBERS y, int incy) { BLAS(swap)(&n, x, &incx, y, &incy); }

/* op(A) where A is stored by rows and op is the conjugate transpose: the conjugate of what is stored by columns.
   Vectors are conjugated before and after instead. */
static char OF(c_operation)(int order, int trans, int *conjugates) {
  *conjugates = 0;
#ifdef COMPLEX
  if (order != JE_BY_COLUMNS && trans == JE_CONJUGATE) {
    *conjugates = 1;
    return 'N';
  }
  if (order == JE_BY_COLUMNS) return je_operation(trans);
#endif
  return je_real_operation(order, trans);
}

void CBLAS(gemv)(int order, int trans, int m, int n, BY_VALUE alpha, const NUMBERS a, int lda, const NUMBERS x,
                 int incx, BY_VALUE beta, NUMBERS y, int incy) {
  int conjugates;
  char op = OF(c_operation)(order, trans, &conjugates);
  if (order == JE_BY_COLUMNS) {
    BLAS(gemv)(&op, &m, &n, AT(alpha), a, &lda, x, &incx, AT(beta), y, &incy);
  } else if (!conjugates) {
    BLAS(gemv)(&op, &n, &m, AT(alpha), a, &lda, x, &incx, AT(beta), y, &incy);
  } else {
    SCALAR first = CONJ(*AT(alpha)), second = CONJ(*AT(beta));
    const SCALAR *u = OF(conjugate_of_vector)(m, x, &incx);
    OF(conjugate)(n, y, incy);
    BLAS(gemv)(&op, &n, &m, &first, a, &lda, u, &incx, &second, y, &incy);
    OF(conjugate)(n, y, incy);
    OF(release)(u);
  }
}

void CBLAS(trmv)(int order, int uplo, int trans, int diag, int n, const NUMBERS a, int lda, NUMBERS x, int incx) {
  int conjugates;
  char triangle = je_triangle(order, uplo), unit = je_diagonal(diag);
  char op = OF(c_operation)(order, trans, &conjugates);
  if (conjugates) OF(conjugate)(n, x, incx);
  BLAS(trmv)(&triangle, &op, &unit, &n, a, &lda, x, &incx);
  if (conjugates) OF(conjugate)(n, x, incx);
}

void CBLAS(trsv)(int order, int uplo, int trans, int diag, int n, const NUMBERS a, int lda, NUMBERS x, int incx) {
  int conjugates;
  char triangle = je_triangle(order, uplo), unit = je_diagonal(diag);
  char op = OF(c_operation)(order, trans, &conjugates);
  if (conjugates) OF(conjugate)(n, x, incx);
  BLAS(trsv)(&triangle, &op, &unit, &n, a, &lda, x, &incx);
  if (conjugates) OF(conjugate)(n, x, incx);
}

void CBLAS(gemm)(int order, int transa, int transb, int m, int n, int k, BY_VALUE alpha, const NUMBERS a, int lda,
                 const NUMBERS b, int ldb, BY_VALUE beta, NUMBERS c, int ldc) {
  char opa = je_operation(transa), opb = je_operation(transb);
  if (order == JE_BY_COLUMNS)
    BLAS(gemm)(&opa, &opb, &m, &n, &k, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
  else
    BLAS(gemm)(&opb, &opa, &n, &m, &k, AT(alpha), b, &ldb, a, &lda, AT(beta), c, &ldc);
}

void CBLAS(symm)(int order, int side, int uplo, int m, int n, BY_VALUE alpha, const NUMBERS a, int lda, const NUMBERS b,
                 int ldb, BY_VALUE beta, NUMBERS c, int ldc) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo);
  int rows = order == JE_BY_COLUMNS ? m : n, columns = order == JE_BY_COLUMNS ? n : m;
  BLAS(symm)(&of, &triangle, &rows, &columns, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
}

void CBLAS(syrk)(int order, int uplo, int trans, int n, int k, BY_VALUE alpha, const NUMBERS a, int lda, BY_VALUE beta,
                 NUMBERS c, int ldc) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans);
  BLAS(syrk)(&triangle, &op, &n, &k, AT(alpha), a, &lda, AT(beta), c, &ldc);
}

void CBLAS(syr2k)(int order, int uplo, int trans, int n, int k, BY_VALUE alpha, const NUMBERS a, int lda,
                  const NUMBERS b, int ldb, BY_VALUE beta, NUMBERS c, int ldc) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans);
  BLAS(syr2k)(&triangle, &op, &n, &k, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
}

void CBLAS(trmm)(int order, int side, int uplo, int trans, int diag, int m, int n, BY_VALUE alpha, const NUMBERS a,
                 int lda, NUMBERS b, int ldb) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo), op = je_operation(trans);
  char unit = je_diagonal(diag);
  int rows = order == JE_BY_COLUMNS ? m : n, columns = order == JE_BY_COLUMNS ? n : m;
  BLAS(trmm)(&of, &triangle, &op, &unit, &rows, &columns, AT(alpha), a, &lda, b, &ldb);
}

void CBLAS(trsm)(int order, int side, int uplo, int trans, int diag, int m, int n, BY_VALUE alpha, const NUMBERS a,
                 int lda, NUMBERS b, int ldb) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo), op = je_operation(trans);
  char unit = je_diagonal(diag);
  int rows = order == JE_BY_COLUMNS ? m : n, columns = order == JE_BY_COLUMNS ? n : m;
  BLAS(trsm)(&of, &triangle, &op, &unit, &rows, &columns, AT(alpha), a, &lda, b, &ldb);
}

extern int JOIN3(i, LETTER, amax_)(const int *, const SCALAR *, const int *);

/* The position in C counts from zero. */
unsigned long JOIN3(cblas_i, LETTER, amax)(int n, const NUMBERS x, int incx) {
  int position = JOIN3(i, LETTER, amax_)(&n, x, &incx);
  return position > 0 ? (unsigned long)(position - 1) : 0;
}

#ifdef COMPLEX

#define CBLAS_NORM(name) JOIN(cblas_, JOIN(JOIN(REAL_LETTER, LETTER), name))

void CBLAS(dotu_sub)(int n, const void *x, int incx, const void *y, int incy, void *result) {
  *(SCALAR *)result = OF(plain_dot)(n, x, incx, y, incy);
}

void CBLAS(dotc_sub)(int n, const void *x, int incx, const void *y, int incy, void *result) {
  *(SCALAR *)result = OF(inner)(n, x, incx, y, incy);
}

REAL CBLAS_NORM(nrm2)(int n, const void *x, int incx) { return NORM(nrm2)(&n, x, &incx); }

REAL CBLAS_NORM(asum)(int n, const void *x, int incx) { return NORM(asum)(&n, x, &incx); }

void JOIN(cblas_, JOIN(JOIN(LETTER, REAL_LETTER), scal))(int n, REAL alpha, void *x, int incx) {
  MIXED(scal)(&n, &alpha, x, &incx);
}

void JOIN(cblas_, JOIN(JOIN(LETTER, REAL_LETTER), rot))(int n, void *x, int incx, void *y, int incy, REAL c, REAL s) {
  MIXED(rot)(&n, x, &incx, y, &incy, &c, &s);
}

void CBLAS(geru)(int order, int m, int n, const void *alpha, const void *x, int incx, const void *y, int incy, void *a,
                 int lda) {
  if (order == JE_BY_COLUMNS)
    BLAS(geru)(&m, &n, alpha, x, &incx, y, &incy, a, &lda);
  else
    BLAS(geru)(&n, &m, alpha, y, &incy, x, &incx, a, &lda);
}

void CBLAS(gerc)(int order, int m, int n, const void *alpha, const void *x, int incx, const void *y, int incy, void *a,
                 int lda) {
  if (order == JE_BY_COLUMNS) {
    BLAS(gerc)(&m, &n, alpha, x, &incx, y, &incy, a, &lda);
    return;
  }
  const SCALAR *v = OF(conjugate_of_vector)(n, y, &incy);
  BLAS(geru)(&n, &m, alpha, v, &incy, x, &incx, a, &lda);
  OF(release)(v);
}

/* By rows, a Hermitian matrix is the conjugate of what is stored by columns. */
void CBLAS(hemv)(int order, int uplo, int n, const void *alpha, const void *a, int lda, const void *x, int incx,
                 const void *beta, void *y, int incy) {
  char triangle = je_triangle(order, uplo);
  if (order == JE_BY_COLUMNS) {
    BLAS(hemv)(&triangle, &n, alpha, a, &lda, x, &incx, beta, y, &incy);
    return;
  }
  SCALAR first = CONJ(*AT(alpha)), second = CONJ(*AT(beta));
  const SCALAR *u = OF(conjugate_of_vector)(n, x, &incx);
  OF(conjugate)(n, y, incy);
  BLAS(hemv)(&triangle, &n, &first, a, &lda, u, &incx, &second, y, &incy);
  OF(conjugate)(n, y, incy);
  OF(release)(u);
}

void CBLAS(hemm)(int order, int side, int uplo, int m, int n, const void *alpha, const void *a, int lda, const void *b,
                 int ldb, const void *beta, void *c, int ldc) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo);
  int rows = order == JE_BY_COLUMNS ? m : n, columns = order == JE_BY_COLUMNS ? n : m;
  BLAS(hemm)(&of, &triangle, &rows, &columns, alpha, a, &lda, b, &ldb, beta, c, &ldc);
}

void CBLAS(herk)(int order, int uplo, int trans, int n, int k, REAL alpha, const void *a, int lda, REAL beta, void *c,
                 int ldc) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans) == 'N' ? 'N' : 'C';
  BLAS(herk)(&triangle, &op, &n, &k, &alpha, a, &lda, &beta, c, &ldc);
}

void CBLAS(her2k)(int order, int uplo, int trans, int n, int k, const void *alpha, const void *a, int lda,
                  const void *b, int ldb, REAL beta, void *c, int ldc) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans) == 'N' ? 'N' : 'C';
  SCALAR factor = order == JE_BY_COLUMNS ? *AT(alpha) : CONJ(*AT(alpha));
  BLAS(her2k)(&triangle, &op, &n, &k, &factor, a, &lda, b, &ldb, &beta, c, &ldc);
}

#else

SCALAR CBLAS(dot)(int n, const SCALAR *x, int incx, const SCALAR *y, int incy) {
  return BLAS(dot)(&n, x, &incx, y, &incy);
}

REAL CBLAS(nrm2)(int n, const SCALAR *x, int incx) { return BLAS(nrm2)(&n, x, &incx); }

REAL CBLAS(asum)(int n, const SCALAR *x, int incx) { return BLAS(asum)(&n, x, &incx); }

void CBLAS(rot)(int n, SCALAR *x, int incx, SCALAR *y, int incy, REAL c, REAL s) {
  BLAS(rot)(&n, x, &incx, y, &incy, &c, &s);
}

void CBLAS(ger)(int order, int m, int n, SCALAR alpha, const SCALAR *x, int incx, const SCALAR *y, int incy, SCALAR *a,
                int lda) {
  if (order == JE_BY_COLUMNS)
    BLAS(ger)(&m, &n, &alpha, x, &incx, y, &incy, a, &lda);
  else
    BLAS(ger)(&n, &m, &alpha, y, &incy, x, &incx, a, &lda);
}

void CBLAS(symv)(int order, int uplo, int n, SCALAR alpha, const SCALAR *a, int lda, const SCALAR *x, int incx,
                 SCALAR beta, SCALAR *y, int incy) {
  char triangle = je_triangle(order, uplo);
  BLAS(symv)(&triangle, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy);
}

#endif
