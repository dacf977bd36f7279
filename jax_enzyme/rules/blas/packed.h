/* Symmetric matrices that are not positive definite, as packed triangles: by way of the whole triangle. */
#ifndef COMPLEX

static SCALAR *OF(new_triangle)(char part, int n, const SCALAR *ap) {
  int ld = je_at_least_one(n);
  SCALAR *a = OF(new)((index_t)ld * n);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, n); i++)
      a[i + (index_t)j * ld] = ap[OF(stored)(part, n, n, 0, i, j)];
  return a;
}

static void OF(pack_triangle)(char part, int n, SCALAR *a, SCALAR *ap) {
  int ld = je_at_least_one(n);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, n); i++)
      ap[OF(stored)(part, n, n, 0, i, j)] = a[i + (index_t)j * ld];
  free(a);
}

void BLAS(sptrf)(const char *uplo, const int *n, SCALAR *ap, int *ipiv, int *info) {
  char part = je_upper(uplo);
  int ld = je_at_least_one(*n), room = ld;
  SCALAR *a = OF(new_triangle)(part, *n, ap), *work = OF(new)(room);
  BLAS(sytrf)(uplo, n, a, &ld, ipiv, work, &room, info);
  OF(pack_triangle)(part, *n, a, ap);
  free(work);
}

void BLAS(sptrs)(const char *uplo, const int *n, const int *nrhs, const SCALAR *ap, const int *ipiv, SCALAR *b,
                 const int *ldb, int *info) {
  int ld = je_at_least_one(*n);
  SCALAR *a = OF(new_triangle)(je_upper(uplo), *n, ap);
  BLAS(sytrs)(uplo, n, nrhs, a, &ld, ipiv, b, ldb, info);
  free(a);
}

void BLAS(spsv)(const char *uplo, const int *n, const int *nrhs, SCALAR *ap, int *ipiv, SCALAR *b, const int *ldb,
                int *info) {
  BLAS(sptrf)(uplo, n, ap, ipiv, info);
  if (*info == 0) BLAS(sptrs)(uplo, n, nrhs, ap, ipiv, b, ldb, info);
}

void BLAS(sptri)(const char *uplo, const int *n, SCALAR *ap, const int *ipiv, SCALAR *work, int *info) {
  char part = je_upper(uplo);
  int ld = je_at_least_one(*n);
  SCALAR *a = OF(new_triangle)(part, *n, ap);
  BLAS(sytri)(uplo, n, a, &ld, ipiv, work, info);
  OF(pack_triangle)(part, *n, a, ap);
}

/* The norm of a matrix of which a triangle is stored. */
SCALAR BLAS(lansy)(const char *norm, const char *uplo, const int *n, const SCALAR *a, const int *lda, SCALAR *work) {
  int ld = je_at_least_one(*n);
  SCALAR *whole = OF(new_copy)(je_upper(uplo), *n, *n, a, *lda);
  OF(complete)(je_upper(uplo), *n, whole, ld);
  SCALAR found = BLAS(lange)(norm, n, n, whole, &ld, work);
  free(whole);
  return found;
}

/* The reflection that takes (alpha, x) to (beta, 0) (see `orthogonal.h`); larfgp: to a beta that is not negative. Where
   x is zero there is none, though close by there is one: what is computed jumps, or has no bound, and its derivative is
   no number. */
static void OF(no_reflection)(int rest, SCALAR *alpha, SCALAR *x, int incx, SCALAR *tau) {
  SCALAR none = (SCALAR)__builtin_sqrt(OF(inner)(rest, x, incx, x, incx));
  *tau += none, *alpha += none;
  OF(accumulate)(rest, 1, &none, 0, x, incx);
}

void BLAS(larfg)(const int *n, SCALAR *alpha, SCALAR *x, const int *incx, SCALAR *tau) {
  int rest = *n - 1, two = 2;
  *tau = 0;
  if (rest < 1) return;
  SCALAR both[2] = {*alpha, BLAS(nrm2)(&rest, x, incx)};
  if (both[1] == 0) {
    OF(no_reflection)(rest, alpha, x, *incx, tau);
    return;
  }
  SCALAR size = BLAS(nrm2)(&two, both, &je_one_int), beta = *alpha >= 0 ? -size : size, factor = 1 / (*alpha - beta);
  *tau = (beta - *alpha) / beta;
  BLAS(scal)(&rest, &factor, x, incx);
  *alpha = beta;
}

void BLAS(larfgp)(const int *n, SCALAR *alpha, SCALAR *x, const int *incx, SCALAR *tau) {
  int rest = *n - 1, two = 2;
  *tau = 0;
  if (*n < 1) return;
  SCALAR both[2] = {*alpha, rest < 1 ? 0 : BLAS(nrm2)(&rest, x, incx)};
  if (both[1] == 0) {
    if (*alpha < 0) *alpha = -*alpha, *tau = 2;
    if (rest > 0) OF(no_reflection)(rest, alpha, x, *incx, tau);
    return;
  }
  SCALAR beta = BLAS(nrm2)(&two, both, &je_one_int);
  SCALAR distance = *alpha < 0 ? *alpha - beta : -both[1] * (both[1] / (*alpha + beta)), factor = 1 / distance;
  *tau = -distance / beta;
  BLAS(scal)(&rest, &factor, x, incx);
  *alpha = beta;
}

/* C - tau v (v^T C), or C - tau (C v) v^T. */
void BLAS(larf)(const char *side, const int *m, const int *n, const SCALAR *v, const int *incv, const SCALAR *tau,
                SCALAR *c, const int *ldc, SCALAR *work) {
  int left = je_upper(side) == 'L', size = left ? *m : *n, other = left ? *n : *m;
  SCALAR minus = -*tau, *u = OF(packed)(size, v, *incv), *w = OF(new)(other);
  char turned = 'T', plain = 'N';
  (void)work;
  OF(fill)(other, 0, w, 1);
  if (size > 0 && other > 0) {
    BLAS(gemv)(left ? &turned : &plain, m, n, &OF(one), c, ldc, u, &je_one_int, &OF(one), w, &je_one_int);
    BLAS(ger)(m, n, &minus, left ? u : w, &je_one_int, left ? w : u, &je_one_int, c, ldc);
  }
  free(w);
  free(u);
}

#endif
