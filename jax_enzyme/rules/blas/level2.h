/* Matrices and vectors. G stands for the cotangent of the result before the call is reversed. */

/* y = alpha op(A) x + beta y:
     xbar += conj(alpha) op(A)^H G, op(A)bar += conj(alpha) G x^H, alphabar += <op(A) x, G>, betabar += <y, G>,
     ybar = conj(beta) G
   Where A has no elements, nothing happens at all, not even to y. */

void RULE(gemv, _jvp)(const char *trans, const int *m, const int *n, const SCALAR *alpha, const SCALAR *a,
                      const int *lda, const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y, const int *incy,
                      const SCALAR *salpha, const SCALAR *sa, const SCALAR *sx, const SCALAR *sbeta, SCALAR *sy) {
  if (sy && *m > 0 && *n > 0) {
    int rows = OF(operation)(trans) == 'N' ? *m : *n;
    if (sa)
      BLAS(gemv)(trans, m, n, alpha, sa, lda, x, incx, beta, sy, incy);
    else
      OF(scale)(rows, *beta, sy, *incy);
    if (sx) BLAS(gemv)(trans, m, n, alpha, a, lda, sx, incx, &OF(one), sy, incy);
    if (salpha) BLAS(gemv)(trans, m, n, salpha, a, lda, x, incx, &OF(one), sy, incy);
    if (sbeta && (*beta != 0 || *sbeta != 0)) BLAS(axpy)(&rows, sbeta, y, incy, sy, incy);
  }
  BLAS(gemv)(trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

struct OF(gemv_frame) {
  int m, n, lda, kept_lda, incx, kept_incx, incy, kept_incy;
  SCALAR alpha, beta;
  const SCALAR *a, *x, *y;
  SCALAR *salpha, *sa, *sx, *sbeta, *sy;
  char op;
};

void *RULE(gemv, _forward)(const char *trans, const int *m, const int *n, const SCALAR *alpha, const SCALAR *a,
                           const int *lda, const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y,
                           const int *incy, SCALAR *salpha, SCALAR *sa, SCALAR *sx, SCALAR *sbeta, SCALAR *sy,
                           long stable, void *arena) {
  struct OF(gemv_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->op = OF(operation)(trans), f->m = *m, f->n = *n, f->lda = f->kept_lda = *lda, f->alpha = *alpha, f->beta = *beta;
  f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->salpha = salpha, f->sa = sa, f->sx = sx, f->sbeta = sbeta, f->sy = *m > 0 && *n > 0 ? sy : 0;
  f->a = a, f->x = x, f->y = y;
  if (f->sy) {
    int rows = f->op == 'N' ? *m : *n, columns = f->op == 'N' ? *n : *m;
    if (sx || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *m, *n, a, &f->kept_lda);
    if (sa || salpha) f->x = OF(keep_vector)(arena, je_is_stable(stable, 2), columns, x, &f->kept_incx);
    if (sbeta) f->y = OF(keep_vector)(arena, 0, rows, y, &f->kept_incy);
  }
  BLAS(gemv)(trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
  return f;
}

void RULE(gemv, _reverse)(void *frame) {
  struct OF(gemv_frame) *f = frame;
  if (!f->sy) return;
  int m = f->m, n = f->n, rows = f->op == 'N' ? m : n;
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha) {
    SCALAR *t = OF(new)(rows);
    BLAS(gemv)(&f->op, &m, &n, &OF(one), f->a, &f->kept_lda, f->x, &f->kept_incx, &OF(zero), t, &je_one_int);
    *f->salpha += OF(inner)(rows, t, 1, f->sy, f->incy);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner)(rows, f->y, f->kept_incy, f->sy, f->incy);
  if (f->sa) {
    if (f->op == 'N')
      OF(add_outer)(m, n, alpha, 'N', f->sy, f->incy, 'C', f->x, f->kept_incx, f->sa, f->lda);
    else if (f->op == 'T')
      OF(add_outer)(m, n, alpha, 'R', f->x, f->kept_incx, 'T', f->sy, f->incy, f->sa, f->lda);
    else
      OF(add_outer)(m, n, f->alpha, 'N', f->x, f->kept_incx, 'C', f->sy, f->incy, f->sa, f->lda);
  }
  if (f->sx) OF(add_matrix_vector)(OF(adjoint)(f->op), m, n, alpha, f->a, f->kept_lda, f->sy, f->incy, f->sx, f->incx);
  OF(scale)(rows, CONJ(f->beta), f->sy, f->incy);
}

#ifndef COMPLEX

/* A = A + alpha x y^T:  xbar += alpha G y, ybar += alpha G^T x, alphabar += x . G y */

void RULE(ger, _jvp)(const int *m, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, const SCALAR *y,
                     const int *incy, SCALAR *a, const int *lda, const SCALAR *salpha, const SCALAR *sx,
                     const SCALAR *sy, SCALAR *sa) {
  if (sa && sx) BLAS(ger)(m, n, alpha, sx, incx, y, incy, sa, lda);
  if (sa && sy) BLAS(ger)(m, n, alpha, x, incx, sy, incy, sa, lda);
  if (sa && salpha) BLAS(ger)(m, n, salpha, x, incx, y, incy, sa, lda);
  BLAS(ger)(m, n, alpha, x, incx, y, incy, a, lda);
}

struct OF(ger_frame) {
  int m, n, lda, incx, kept_incx, incy, kept_incy;
  SCALAR alpha;
  const SCALAR *x, *y;
  SCALAR *salpha, *sx, *sy, *sa;
};

void *RULE(ger, _forward)(const int *m, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx,
                          const SCALAR *y, const int *incy, SCALAR *a, const int *lda, SCALAR *salpha, SCALAR *sx,
                          SCALAR *sy, SCALAR *sa, long stable, void *arena) {
  struct OF(ger_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->m = *m, f->n = *n, f->lda = *lda, f->alpha = *alpha;
  f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->salpha = salpha, f->sx = sx, f->sy = sy, f->sa = *m > 0 && *n > 0 ? sa : 0, f->x = x, f->y = y;
  if (f->sa && (sy || salpha)) f->x = OF(keep_vector)(arena, je_is_stable(stable, 1), *m, x, &f->kept_incx);
  if (f->sa && (sx || salpha)) f->y = OF(keep_vector)(arena, je_is_stable(stable, 2), *n, y, &f->kept_incy);
  BLAS(ger)(m, n, alpha, x, incx, y, incy, a, lda);
  return f;
}

void RULE(ger, _reverse)(void *frame) {
  struct OF(ger_frame) *f = frame;
  if (!f->sa) return;
  if (f->salpha) {
    SCALAR *t = OF(new)(f->m);
    BLAS(gemv)(&je_as_it_is, &f->m, &f->n, &OF(one), f->sa, &f->lda, f->y, &f->kept_incy, &OF(zero), t, &je_one_int);
    *f->salpha += OF(inner)(f->m, f->x, f->kept_incx, t, 1);
    free(t);
  }
  if (f->sx) OF(add_matrix_vector)('N', f->m, f->n, f->alpha, f->sa, f->lda, f->y, f->kept_incy, f->sx, f->incx);
  if (f->sy) OF(add_matrix_vector)('T', f->m, f->n, f->alpha, f->sa, f->lda, f->x, f->kept_incx, f->sy, f->incy);
}

/* y = alpha S x + beta y, S symmetric and stored as a triangle:
     xbar += alpha S G, alphabar += S x . G, betabar += y . G, ybar = beta G,
     Sbar_ij += alpha (G_i x_j + x_i G_j) for the two entries that it stands for, Sbar_ii += alpha G_i x_i */

void RULE(symv, _jvp)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda,
                      const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y, const int *incy,
                      const SCALAR *salpha, const SCALAR *sa, const SCALAR *sx, const SCALAR *sbeta, SCALAR *sy) {
  if (sy) {
    if (sa)
      BLAS(symv)(uplo, n, alpha, sa, lda, x, incx, beta, sy, incy);
    else
      OF(scale)(*n, *beta, sy, *incy);
    if (sx) BLAS(symv)(uplo, n, alpha, a, lda, sx, incx, &OF(one), sy, incy);
    if (salpha) BLAS(symv)(uplo, n, salpha, a, lda, x, incx, &OF(one), sy, incy);
    if (sbeta && (*beta != 0 || *sbeta != 0)) BLAS(axpy)(n, sbeta, y, incy, sy, incy);
  }
  BLAS(symv)(uplo, n, alpha, a, lda, x, incx, beta, y, incy);
}

void *RULE(symv, _forward)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda,
                           const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y, const int *incy,
                           SCALAR *salpha, SCALAR *sa, SCALAR *sx, SCALAR *sbeta, SCALAR *sy, long stable,
                           void *arena) {
  struct OF(gemv_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->op = je_upper(uplo), f->m = f->n = *n, f->lda = f->kept_lda = *lda, f->alpha = *alpha, f->beta = *beta;
  f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->salpha = salpha, f->sa = sa, f->sx = sx, f->sbeta = sbeta, f->sy = sy, f->a = a, f->x = x, f->y = y;
  if (sy) {
    if (sx || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), f->op, *n, *n, a, &f->kept_lda);
    if (sa || salpha) f->x = OF(keep_vector)(arena, je_is_stable(stable, 2), *n, x, &f->kept_incx);
    if (sbeta) f->y = OF(keep_vector)(arena, 0, *n, y, &f->kept_incy);
  }
  BLAS(symv)(uplo, n, alpha, a, lda, x, incx, beta, y, incy);
  return f;
}

void RULE(symv, _reverse)(void *frame) {
  struct OF(gemv_frame) *f = frame;
  if (!f->sy) return;
  int n = f->n;
  if (f->salpha) {
    SCALAR *t = OF(new)(n);
    BLAS(symv)(&f->op, &n, &OF(one), f->a, &f->kept_lda, f->x, &f->kept_incx, &OF(zero), t, &je_one_int);
    *f->salpha += OF(inner)(n, t, 1, f->sy, f->incy);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner)(n, f->y, f->kept_incy, f->sy, f->incy);
  if (f->sa) {
    int ld = je_at_least_one(n);
    SCALAR *g = OF(new)(n), *x = OF(new)(n);
    OF(pack)(n, f->sy, f->incy, g);
    OF(pack)(n, f->x, f->kept_incx, x);
    OF(add_symmetric_product)(f->op, 'N', n, 1, f->alpha, g, ld, x, ld, f->sa, f->lda);
    free(g);
    free(x);
  }
  if (f->sx) BLAS(symv)(&f->op, &n, &f->alpha, f->a, &f->kept_lda, f->sy, &f->incy, &OF(one), f->sx, &f->incx);
  OF(scale)(n, f->beta, f->sy, f->incy);
}

#endif

/* Triangular A. Only the triangle that is stored has a cotangent, without the diagonal if that is one by definition.

   x = op(A) x:           op(A)bar += G x^H with the old x, xbar = op(A)^H G
   x = op(A)^-1 x:        xbar = op(A)^-H G, op(A)bar -= xbar x^H with the new x */

struct OF(triangular_vector_frame) {
  int n, lda, kept_lda, incx, kept_incx;
  const SCALAR *a, *x;
  SCALAR *sa, *sx;
  char uplo, op, diag;
};

void RULE(trmv, _jvp)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a,
                      const int *lda, SCALAR *x, const int *incx, const SCALAR *sa, SCALAR *sx) {
  if (sx) {
    BLAS(trmv)(uplo, trans, diag, n, a, lda, sx, incx);
    if (sa) OF(add_tangent_product)(uplo, trans, diag, *n, 1, sa, *lda, x, *incx, sx);
  }
  BLAS(trmv)(uplo, trans, diag, n, a, lda, x, incx);
}

void RULE(trsv, _jvp)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a,
                      const int *lda, SCALAR *x, const int *incx, const SCALAR *sa, SCALAR *sx) {
  BLAS(trsv)(uplo, trans, diag, n, a, lda, x, incx);
  if (sx) {
    if (sa) OF(add_tangent_product)(uplo, trans, diag, *n, -1, sa, *lda, x, *incx, sx);
    BLAS(trsv)(uplo, trans, diag, n, a, lda, sx, incx);
  }
}

static struct OF(triangular_vector_frame) *
    OF(new_triangular_vector_frame)(const char *uplo, const char *trans, const char *diag, const int *n,
                                    const SCALAR *a, const int *lda, const SCALAR *x, const int *incx, SCALAR *sa,
                                    SCALAR *sx, long stable, void *arena) {
  struct OF(triangular_vector_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->op = OF(operation)(trans), f->diag = je_upper(diag), f->n = *n;
  f->lda = f->kept_lda = *lda, f->incx = f->kept_incx = *incx, f->sa = sa, f->sx = sx, f->a = a, f->x = x;
  if (sx) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), f->uplo, *n, *n, a, &f->kept_lda);
  return f;
}

void *RULE(trmv, _forward)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a,
                           const int *lda, SCALAR *x, const int *incx, SCALAR *sa, SCALAR *sx, long stable,
                           void *arena) {
  struct OF(triangular_vector_frame) *f =
      OF(new_triangular_vector_frame)(uplo, trans, diag, n, a, lda, x, incx, sa, sx, stable, arena);
  if (sx && sa) f->x = OF(keep_vector)(arena, 0, *n, x, &f->kept_incx);
  BLAS(trmv)(uplo, trans, diag, n, a, lda, x, incx);
  return f;
}

void *RULE(trsv, _forward)(const char *uplo, const char *trans, const char *diag, const int *n, const SCALAR *a,
                           const int *lda, SCALAR *x, const int *incx, SCALAR *sa, SCALAR *sx, long stable,
                           void *arena) {
  struct OF(triangular_vector_frame) *f =
      OF(new_triangular_vector_frame)(uplo, trans, diag, n, a, lda, x, incx, sa, sx, stable, arena);
  BLAS(trsv)(uplo, trans, diag, n, a, lda, x, incx);
  if (sx && sa) f->x = OF(keep_vector)(arena, je_is_stable(stable, 1), *n, x, &f->kept_incx);
  return f;
}

/* The cotangent of op(A) is sign u x^H. */
static void OF(add_triangle_cotangent)(struct OF(triangular_vector_frame) * f, SCALAR sign) {
  SCALAR *u = OF(new)(f->n), *x = OF(new)(f->n);
  OF(pack)(f->n, f->sx, f->incx, u);
  OF(pack)(f->n, f->x, f->kept_incx, x);
  if (f->op != 'C') OF(conjugate)(f->n, x, 1);
  if (f->op == 'C') OF(conjugate)(f->n, u, 1);
  int strict = f->diag == 'U';
  if (f->op == 'N')
    OF(add_outer_triangle)(f->uplo, strict, f->n, sign, u, x, f->sa, f->lda);
  else
    OF(add_outer_triangle)(f->uplo, strict, f->n, sign, x, u, f->sa, f->lda);
  free(u);
  free(x);
}

void RULE(trmv, _reverse)(void *frame) {
  struct OF(triangular_vector_frame) *f = frame;
  if (!f->sx) return;
  if (f->sa) OF(add_triangle_cotangent)(f, 1);
  char op = OF(adjoint)(f->op), plain = op == 'R' ? 'N' : op;
  if (op == 'R') OF(conjugate)(f->n, f->sx, f->incx);
  BLAS(trmv)(&f->uplo, &plain, &f->diag, &f->n, f->a, &f->kept_lda, f->sx, &f->incx);
  if (op == 'R') OF(conjugate)(f->n, f->sx, f->incx);
}

void RULE(trsv, _reverse)(void *frame) {
  struct OF(triangular_vector_frame) *f = frame;
  if (!f->sx) return;
  char op = OF(adjoint)(f->op), plain = op == 'R' ? 'N' : op;
  if (op == 'R') OF(conjugate)(f->n, f->sx, f->incx);
  BLAS(trsv)(&f->uplo, &plain, &f->diag, &f->n, f->a, &f->kept_lda, f->sx, &f->incx);
  if (op == 'R') OF(conjugate)(f->n, f->sx, f->incx);
  if (f->sa) OF(add_triangle_cotangent)(f, -1);
}
