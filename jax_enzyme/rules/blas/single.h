/* Single reflections, of real numbers. */
#ifndef COMPLEX

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
