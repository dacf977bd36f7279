/* The C interface, in terms of the Fortran one: a matrix stored by rows is its transpose stored by columns. These bodies
   are put into kernels that call them, and are differentiated like the kernel's own code. */

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

#ifndef COMPLEX
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

void CBLAS(gemv)(int order, int trans, int m, int n, SCALAR alpha, const SCALAR *a, int lda, const SCALAR *x, int incx,
                 SCALAR beta, SCALAR *y, int incy) {
  char op = je_real_operation(order, trans);
  if (order == JE_BY_COLUMNS)
    BLAS(gemv)(&op, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy);
  else
    BLAS(gemv)(&op, &n, &m, &alpha, a, &lda, x, &incx, &beta, y, &incy);
}

void CBLAS(trmv)(int order, int uplo, int trans, int diag, int n, const SCALAR *a, int lda, SCALAR *x, int incx) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans), unit = je_diagonal(diag);
  BLAS(trmv)(&triangle, &op, &unit, &n, a, &lda, x, &incx);
}

void CBLAS(trsv)(int order, int uplo, int trans, int diag, int n, const SCALAR *a, int lda, SCALAR *x, int incx) {
  char triangle = je_triangle(order, uplo), op = je_real_operation(order, trans), unit = je_diagonal(diag);
  BLAS(trsv)(&triangle, &op, &unit, &n, a, &lda, x, &incx);
}
#endif

void CBLAS(gemm)(int order, int transa, int transb, int m, int n, int k, BY_VALUE alpha, const NUMBERS a, int lda,
                 const NUMBERS b, int ldb, BY_VALUE beta, NUMBERS c, int ldc) {
  char opa = je_operation(transa), opb = je_operation(transb);
  if (order == JE_BY_COLUMNS)
    BLAS(gemm)(&opa, &opb, &m, &n, &k, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
  else
    BLAS(gemm)(&opb, &opa, &n, &m, &k, AT(alpha), b, &ldb, a, &lda, AT(beta), c, &ldc);
}

void CBLAS(symm)(int order, int side, int uplo, int m, int n, BY_VALUE alpha, const NUMBERS a, int lda,
                 const NUMBERS b, int ldb, BY_VALUE beta, NUMBERS c, int ldc) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo);
  if (order == JE_BY_COLUMNS)
    BLAS(symm)(&of, &triangle, &m, &n, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
  else
    BLAS(symm)(&of, &triangle, &n, &m, AT(alpha), a, &lda, b, &ldb, AT(beta), c, &ldc);
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
  if (order == JE_BY_COLUMNS)
    BLAS(trmm)(&of, &triangle, &op, &unit, &m, &n, AT(alpha), a, &lda, b, &ldb);
  else
    BLAS(trmm)(&of, &triangle, &op, &unit, &n, &m, AT(alpha), a, &lda, b, &ldb);
}

void CBLAS(trsm)(int order, int side, int uplo, int trans, int diag, int m, int n, BY_VALUE alpha, const NUMBERS a,
                 int lda, NUMBERS b, int ldb) {
  char of = je_side(order, side), triangle = je_triangle(order, uplo), op = je_operation(trans);
  char unit = je_diagonal(diag);
  if (order == JE_BY_COLUMNS)
    BLAS(trsm)(&of, &triangle, &op, &unit, &m, &n, AT(alpha), a, &lda, b, &ldb);
  else
    BLAS(trsm)(&of, &triangle, &op, &unit, &n, &m, AT(alpha), a, &lda, b, &ldb);
}

extern int JOIN3(i, LETTER, amax_)(const int *, const SCALAR *, const int *);

/* The position in C counts from zero. */
unsigned long JOIN3(cblas_i, LETTER, amax)(int n, const NUMBERS x, int incx) {
  int position = JOIN3(i, LETTER, amax_)(&n, x, &incx);
  return position > 0 ? (unsigned long)(position - 1) : 0;
}

#undef CBLAS
#undef BY_VALUE
#undef AT
#undef NUMBERS
