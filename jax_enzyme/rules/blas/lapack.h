/* Factorisations and solvers. What LAPACK reports in `info` and the permutation in `ipiv` have no derivative: it is
   that of the permutation that was taken. Phi takes a triangle of a square matrix and half of its diagonal. */

extern void BLAS(potrf)(const char *, const int *, SCALAR *, const int *, int *);
extern void BLAS(potrs)(const char *, const int *, const int *, const SCALAR *, const int *, SCALAR *, const int *,
                        int *);
extern void BLAS(getrf)(const int *, const int *, SCALAR *, const int *, int *, int *);
extern void BLAS(getrs)(const char *, const int *, const int *, const SCALAR *, const int *, const int *, SCALAR *,
                        const int *, int *);
extern void BLAS(gesv)(const int *, const int *, SCALAR *, const int *, int *, SCALAR *, const int *, int *);
extern void BLAS(trtrs)(const char *, const char *, const char *, const int *, const int *, const SCALAR *, const int *,
                        SCALAR *, const int *, int *);
extern void BLAS(laswp)(const int *, SCALAR *, const int *, const int *, const int *, const int *, const int *);

/* Copies. */

static SCALAR *OF(new_copy)(char uplo, int m, int n, const SCALAR *a, int lda) {
  int ld = je_at_least_one(m);
  SCALAR *copy = OF(new)((index_t)ld * n);
  if (uplo != 'A') OF(fill_part)('A', 0, m, n, 0, copy, ld);
  OF(copy_part)(uplo, m, n, a, lda, copy, ld);
  return copy;
}

static const int *OF(keep_pivots)(void *arena, int n, const int *ipiv) {
  int *copy = je_arena_allocate(arena, (long)je_at_least_one(n) * (long)sizeof(int));
  for (int i = 0; i < n; i++) copy[i] = ipiv[i];
  return copy;
}

/* Exchanges rows as a factorisation did, or back. */
static void OF(permute)(int back, int columns, SCALAR *a, int lda, int pivots, const int *ipiv) {
  if (columns > 0 && pivots > 0)
    BLAS(laswp)(&columns, a, &lda, &je_one_int, &pivots, ipiv, back ? &je_minus_one_int : &je_one_int);
}

/* The other triangle becomes the conjugate transpose of the one that is stored, of a diagonal only the real part
 * counts. */
static void OF(complete)(char uplo, int n, SCALAR *a, int lda) {
#ifdef COMPLEX
  for (int i = 0; i < n; i++) a[i + (index_t)i * lda] = __real__(a[i + (index_t)i * lda]);
#endif
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(uplo, 1, j); i < je_last_row(uplo, 1, j, n); i++)
      a[j + (index_t)i * lda] = CONJ(a[i + (index_t)j * lda]);
}

static void OF(halve_diagonal)(int n, SCALAR *a, int lda) {
  for (int i = 0; i < n; i++) a[i + (index_t)i * lda] /= 2;
}

/* A square matrix becomes Phi of it. */
static void OF(phi)(char uplo, int n, SCALAR *a, int lda) {
  OF(fill_part)(uplo == 'L' ? 'U' : 'L', 1, n, n, 0, a, lda);
  OF(halve_diagonal)(n, a, lda);
}

/* Cholesky: A = L L^H, or U^H U. (I. Murray, Differentiation of the Cholesky decomposition, 2016, equations 8 and 10.)
     dL = L Phi(L^-1 dA L^-H)            S = L^-H Phi(L^H Lbar) L^-1, Abar = Phi(S + S^H)
     dU = Phi(U^-H dA U^-1) U            S = U^-1 Phi(Ubar U^H) U^-H, likewise
   Abar is of the stored triangle: an entry off the diagonal stands for two.
   Where the factorisation fails there is no derivative: tangents are no numbers, and neither are cotangents, unless the
   program never used the result. */

static void OF(spoil)(char uplo, int n, SCALAR *a, int lda) {
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(uplo, 0, j); i < je_last_row(uplo, 0, j, n); i++)
      if (a[i + (index_t)j * lda] != 0) a[i + (index_t)j * lda] = (SCALAR)__builtin_nan("");
}

void RULE(potrf, _jvp)(const char *uplo, const int *n, SCALAR *a, const int *lda, int *info, SCALAR *sa) {
  char part = je_upper(uplo), c = OF(adjoint)('N');
  BLAS(potrf)(uplo, n, a, lda, info);
  if (!sa) return;
  if (*info != 0) {
    OF(fill_part)(part, 0, *n, *n, (SCALAR)__builtin_nan(""), sa, *lda);
    return;
  }
  int ld = je_at_least_one(*n), lower = part == 'L';
  SCALAR *t = OF(new_copy)(part, *n, *n, sa, *lda);
  OF(complete)(part, *n, t, ld);
  OF(triangular_solve)('L', part, lower ? 'N' : c, 'N', *n, *n, a, *lda, t, ld);
  OF(triangular_solve)('R', part, lower ? c : 'N', 'N', *n, *n, a, *lda, t, ld);
  OF(phi)(part, *n, t, ld);
  OF(triangular_product)(lower ? 'L' : 'R', part, 'N', 'N', *n, *n, a, *lda, t, ld);
  OF(copy_part)(part, *n, *n, t, ld, sa, *lda);
  free(t);
}

struct OF(factor_frame) {
  int m, n, nrhs, lda, kept_lda, ldb, kept_ldb, failed;
  const SCALAR *a, *b;
  const int *ipiv;
  SCALAR *sa, *sb;
  char uplo, op, diag;
};

void *RULE(potrf, _forward)(const char *uplo, const int *n, SCALAR *a, const int *lda, int *info, SCALAR *sa,
                            long stable, void *arena) {
  struct OF(factor_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->n = *n, f->lda = f->kept_lda = *lda, f->sa = sa, f->a = a;
  BLAS(potrf)(uplo, n, a, lda, info);
  f->failed = *info != 0;
  if (sa) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), f->uplo, *n, *n, a, &f->kept_lda);
  return f;
}

void RULE(potrf, _reverse)(void *frame) {
  struct OF(factor_frame) *f = frame;
  if (!f->sa) return;
  int n = f->n, ld = je_at_least_one(n), lower = f->uplo == 'L';
  char c = OF(adjoint)('N');
  if (f->failed) OF(spoil)(f->uplo, n, f->sa, f->lda);
  SCALAR *s = OF(new_copy)(f->uplo, n, n, f->sa, f->lda);
  OF(triangular_product)(lower ? 'L' : 'R', f->uplo, c, 'N', n, n, f->a, f->kept_lda, s, ld);
  OF(phi)(f->uplo, n, s, ld);
  OF(triangular_solve)('L', f->uplo, lower ? c : 'N', 'N', n, n, f->a, f->kept_lda, s, ld);
  OF(triangular_solve)('R', f->uplo, lower ? 'N' : c, 'N', n, n, f->a, f->kept_lda, s, ld);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(f->uplo, 0, j); i < je_last_row(f->uplo, 0, j, n); i++)
      f->sa[i + (index_t)j * f->lda] = s[i + (index_t)j * ld] + CONJ(s[j + (index_t)i * ld]);
  OF(halve_diagonal)(n, f->sa, f->lda);
  free(s);
}

/* B = A^-1 B for A = L L^H or U^H U, from the factor:
     dB = A^-1 (dB - (dL L^H + L dL^H) B) with the new B on the right
     W = A^-1 Bbar, Lbar -= the lower triangle of W (L^H B)^H + B (L^H W)^H, Bbar = W
     Ubar -= the upper triangle of (U W) B^H + (U B) W^H */

void RULE(potrs, _jvp)(const char *uplo, const int *n, const int *nrhs, const SCALAR *a, const int *lda, SCALAR *b,
                       const int *ldb, int *info, const SCALAR *sa, SCALAR *sb) {
  char part = je_upper(uplo), c = OF(adjoint)('N'), first = part == 'L' ? c : 'N', second = part == 'L' ? 'N' : c;
  BLAS(potrs)(uplo, n, nrhs, a, lda, b, ldb, info);
  if (!sb) return;
  if (sa) {
    int ld = je_at_least_one(*n);
    SCALAR *t = OF(new_copy)('A', *n, *nrhs, b, *ldb);
    OF(triangular_product)('L', part, first, 'N', *n, *nrhs, a, *lda, t, ld);
    OF(triangular_product)('L', part, second, 'N', *n, *nrhs, sa, *lda, t, ld);
    OF(add_part)('A', 0, *n, *nrhs, -1, t, ld, sb, *ldb);
    OF(copy_part)('A', *n, *nrhs, b, *ldb, t, ld);
    OF(triangular_product)('L', part, first, 'N', *n, *nrhs, sa, *lda, t, ld);
    OF(triangular_product)('L', part, second, 'N', *n, *nrhs, a, *lda, t, ld);
    OF(add_part)('A', 0, *n, *nrhs, -1, t, ld, sb, *ldb);
    free(t);
  }
  int ignored;
  BLAS(potrs)(uplo, n, nrhs, a, lda, sb, ldb, &ignored);
}

void *RULE(potrs, _forward)(const char *uplo, const int *n, const int *nrhs, const SCALAR *a, const int *lda, SCALAR *b,
                            const int *ldb, int *info, SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(factor_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->n = *n, f->nrhs = *nrhs, f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb;
  f->sa = sa, f->sb = sb, f->a = a, f->b = b;
  if (sb) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), f->uplo, *n, *n, a, &f->kept_lda);
  BLAS(potrs)(uplo, n, nrhs, a, lda, b, ldb, info);
  if (sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

void RULE(potrs, _reverse)(void *frame) {
  struct OF(factor_frame) *f = frame;
  if (!f->sb) return;
  int n = f->n, k = f->nrhs, ld = je_at_least_one(n), lower = f->uplo == 'L', ignored;
  char c = OF(adjoint)('N'), op = lower ? c : 'N';
  BLAS(potrs)(&f->uplo, &n, &k, f->a, &f->kept_lda, f->sb, &f->ldb, &ignored);
  if (!f->sa) return;
  SCALAR *x = OF(new_copy)('A', n, k, f->b, f->kept_ldb), *w = OF(new_copy)('A', n, k, f->sb, f->ldb);
  OF(triangular_product)('L', f->uplo, op, 'N', n, k, f->a, f->kept_lda, x, ld);
  OF(triangular_product)('L', f->uplo, op, 'N', n, k, f->a, f->kept_lda, w, ld);
  if (lower) {
    OF(add_triangle_of_product)('L', 'N', 'N', c, n, k, -1, f->sb, f->ldb, x, ld, f->sa, f->lda);
    OF(add_triangle_of_product)('L', 'N', 'N', c, n, k, -1, f->b, f->kept_ldb, w, ld, f->sa, f->lda);
  } else {
    OF(add_triangle_of_product)('U', 'N', 'N', c, n, k, -1, w, ld, f->b, f->kept_ldb, f->sa, f->lda);
    OF(add_triangle_of_product)('U', 'N', 'N', c, n, k, -1, x, ld, f->sb, f->ldb, f->sa, f->lda);
  }
  free(x);
  free(w);
}

/* LU: P A = L U, m x n, in place. With F = L^-1 P dA U^-1 for a square A:
     dL = L tril(F, -1), dU = triu(F) U
     (P A)bar = L^-H (tril(L^H Lbar, -1) + triu(Ubar U^H)) U^-H
   A taller matrix has more rows, L2 U; a wider one more columns, L U2:
     dL2 = (dA2 - L2 dU) U^-1            dU2 = L^-1 (dA2 - dL U2)
     A2bar = L2bar U^-H, Ubar -= triu(L2^H A2bar)         A2bar = L^-H U2bar, Lbar -= tril(A2bar U2^H, -1)
   (The square case follows from Giles 2008, section 2.2, applied to L U.) */

static void OF(lu_tangent)(int m, int n, const SCALAR *lu, int lda, const int *ipiv, SCALAR *s) {
  int k = m < n ? m : n, ld = je_at_least_one(k), below = m - k, beside = n - k;
  OF(permute)(0, n, s, lda, k, ipiv);
  SCALAR *f = OF(new_copy)('A', k, k, s, lda);
  OF(triangular_solve)('L', 'L', 'N', 'U', k, k, lu, lda, f, ld);
  OF(triangular_solve)('R', 'U', 'N', 'N', k, k, lu, lda, f, ld);
  SCALAR *t = OF(new_copy)('U', k, k, f, ld);
  OF(fill_part)('U', 0, k, k, 0, f, ld);
  OF(triangular_product)('L', 'L', 'N', 'U', k, k, lu, lda, f, ld);
  OF(triangular_product)('R', 'U', 'N', 'N', k, k, lu, lda, t, ld);
  if (below > 0) {
    OF(product)('N', 'N', below, k, k, -1, lu + k, lda, t, ld, s + k, lda);
    OF(triangular_solve)('R', 'U', 'N', 'N', below, k, lu, lda, s + k, lda);
  }
  if (beside > 0) {
    index_t at = (index_t)k * lda;
    OF(product)('N', 'N', k, beside, k, -1, f, ld, lu + at, lda, s + at, lda);
    OF(triangular_solve)('L', 'L', 'N', 'U', k, beside, lu, lda, s + at, lda);
  }
  OF(add_part)('A', 0, k, k, 1, f, ld, t, ld);
  OF(copy_part)('A', k, k, t, ld, s, lda);
  free(f);
  free(t);
}

static void OF(lu_cotangent)(int m, int n, const SCALAR *lu, int lda, const int *ipiv, SCALAR *s, int lds) {
  int k = m < n ? m : n, ld = je_at_least_one(k), below = m - k, beside = n - k;
  char c = OF(adjoint)('N');
  if (below > 0) {
    OF(triangular_solve)('R', 'U', c, 'N', below, k, lu, lda, s + k, lds);
    OF(add_triangle_of_product)('U', 'N', c, 'N', k, below, -1, lu + k, lda, s + k, lds, s, lds);
  }
  if (beside > 0) {
    SCALAR *u2bar = s + (index_t)k * lds;
    OF(triangular_solve)('L', 'L', c, 'U', k, beside, lu, lda, u2bar, lds);
    OF(add_triangle_of_product)('L', 'U', 'N', c, k, beside, -1, u2bar, lds, lu + (index_t)k * lda, lda, s, lds);
  }
  SCALAR *u = OF(new_copy)('U', k, k, s, lds), *f = OF(new_copy)('A', k, k, s, lds);
  OF(fill_part)('U', 0, k, k, 0, f, ld);
  OF(triangular_product)('L', 'L', c, 'U', k, k, lu, lda, f, ld);
  OF(triangular_product)('R', 'U', c, 'N', k, k, lu, lda, u, ld);
  OF(copy_part)('U', k, k, u, ld, f, ld);
  OF(triangular_solve)('L', 'L', c, 'U', k, k, lu, lda, f, ld);
  OF(triangular_solve)('R', 'U', c, 'N', k, k, lu, lda, f, ld);
  OF(copy_part)('A', k, k, f, ld, s, lds);
  OF(permute)(1, n, s, lds, k, ipiv);
  free(u);
  free(f);
}

void RULE(getrf, _jvp)(const int *m, const int *n, SCALAR *a, const int *lda, int *ipiv, int *info, SCALAR *sa) {
  BLAS(getrf)(m, n, a, lda, ipiv, info);
  if (sa) OF(lu_tangent)(*m, *n, a, *lda, ipiv, sa);
}

void *RULE(getrf, _forward)(const int *m, const int *n, SCALAR *a, const int *lda, int *ipiv, int *info, SCALAR *sa,
                            long stable, void *arena) {
  struct OF(factor_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->m = *m, f->n = *n, f->lda = f->kept_lda = *lda, f->sa = sa, f->a = a;
  BLAS(getrf)(m, n, a, lda, ipiv, info);
  if (sa) {
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', *m, *n, a, &f->kept_lda);
    f->ipiv = OF(keep_pivots)(arena, *m < *n ? *m : *n, ipiv);
  }
  return f;
}

void RULE(getrf, _reverse)(void *frame) {
  struct OF(factor_frame) *f = frame;
  if (f->sa) OF(lu_cotangent)(f->m, f->n, f->a, f->kept_lda, f->ipiv, f->sa, f->lda);
}

/* B = op(A)^-1 B for P A = L U, from the factors. M stands for L U.
     N: M X = P B       V = M^-H Xbar, Bbar = P^H V,       Mbar = -V X^H
     T: M^T Y = B       W = conj(M^-1) P Xbar = Bbar,      Mbar = -conj(Y W^H),   Y = P X
     C: M^H Y = B       W = M^-1 P Xbar = Bbar,            Mbar = -Y W^H
     Lbar += tril(Mbar U^H, -1), Ubar += triu(L^H Mbar) */

/* t = op(d(L U)) x, where op is N, T or C. */
static SCALAR *OF(new_lu_tangent_product)(char op, int n, int k, const SCALAR *lu, const SCALAR *slu, int lda,
                                          const SCALAR *x, int ldx) {
  int ld = je_at_least_one(n);
  char first = op == 'N' ? 'U' : 'L', second = op == 'N' ? 'L' : 'U';
  char unit_first = op == 'N' ? 'N' : 'U', unit_second = op == 'N' ? 'U' : 'N';
  SCALAR *t = OF(new_copy)('A', n, k, x, ldx);
  OF(triangular_product)('L', first, op, unit_first, n, k, lu, lda, t, ld);
  SCALAR *u = OF(new_tangent_product)('L', second, op, unit_second, n, k, slu, lda, t, ld);
  free(t);
  t = OF(new_tangent_product)('L', first, op, unit_first, n, k, slu, lda, x, ldx);
  OF(triangular_product)('L', second, op, unit_second, n, k, lu, lda, t, ld);
  OF(add_part)('A', 0, n, k, 1, u, ld, t, ld);
  free(u);
  return t;
}

void RULE(getrs, _jvp)(const char *trans, const int *n, const int *nrhs, const SCALAR *a, const int *lda,
                       const int *ipiv, SCALAR *b, const int *ldb, int *info, const SCALAR *sa, SCALAR *sb) {
  BLAS(getrs)(trans, n, nrhs, a, lda, ipiv, b, ldb, info);
  if (!sb) return;
  char op = OF(operation)(trans);
  int ld = je_at_least_one(*n), ignored;
  if (sa) {
    SCALAR *x = OF(new_copy)('A', *n, *nrhs, b, *ldb);
    if (op != 'N') OF(permute)(0, *nrhs, x, ld, *n, ipiv);
    SCALAR *t = OF(new_lu_tangent_product)(op, *n, *nrhs, a, sa, *lda, x, ld);
    if (op == 'N') OF(permute)(1, *nrhs, t, ld, *n, ipiv);
    OF(add_part)('A', 0, *n, *nrhs, -1, t, ld, sb, *ldb);
    free(x);
    free(t);
  }
  BLAS(getrs)(trans, n, nrhs, a, lda, ipiv, sb, ldb, &ignored);
}

void *RULE(getrs, _forward)(const char *trans, const int *n, const int *nrhs, const SCALAR *a, const int *lda,
                            const int *ipiv, SCALAR *b, const int *ldb, int *info, SCALAR *sa, SCALAR *sb, long stable,
                            void *arena) {
  struct OF(factor_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->op = OF(operation)(trans), f->n = *n, f->nrhs = *nrhs, f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb;
  f->sa = sa, f->sb = sb, f->a = a, f->b = b;
  if (sb) {
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', *n, *n, a, &f->kept_lda);
    f->ipiv = OF(keep_pivots)(arena, *n, ipiv);
  }
  BLAS(getrs)(trans, n, nrhs, a, lda, ipiv, b, ldb, info);
  if (sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

/* B = op(M)^-1 B, with the permutation. */
static void OF(lu_solve)(char op, struct OF(factor_frame) * f, SCALAR *b, int ldb) {
  int ignored;
  char plain = op == 'R' ? 'N' : op;
  if (op == 'R') OF(conjugate_part)(f->n, f->nrhs, b, ldb);
  BLAS(getrs)(&plain, &f->n, &f->nrhs, f->a, &f->kept_lda, f->ipiv, b, &ldb, &ignored);
  if (op == 'R') OF(conjugate_part)(f->n, f->nrhs, b, ldb);
}

void RULE(getrs, _reverse)(void *frame) {
  struct OF(factor_frame) *f = frame;
  if (!f->sb) return;
  int n = f->n, k = f->nrhs, ld = je_at_least_one(n);
  char c = OF(adjoint)('N');
  OF(lu_solve)(OF(adjoint)(f->op), f, f->sb, f->ldb);
  if (!f->sa) return;
  /* Mbar = -left right^H */
  SCALAR *left = OF(new_copy)('A', n, k, f->op == 'N' ? f->sb : f->b, f->op == 'N' ? f->ldb : f->kept_ldb);
  SCALAR *right = OF(new_copy)('A', n, k, f->op == 'N' ? f->b : f->sb, f->op == 'N' ? f->kept_ldb : f->ldb);
  OF(permute)(0, k, left, ld, n, f->ipiv);
#ifdef COMPLEX
  if (f->op == 'T') {
    OF(conjugate_part)(n, k, left, ld);
    OF(conjugate_part)(n, k, right, ld);
  }
#endif
  SCALAR *product = OF(new_copy)('A', n, k, right, ld);
  OF(triangular_product)('L', 'U', 'N', 'N', n, k, f->a, f->kept_lda, product, ld);
  OF(add_triangle_of_product)('L', 'U', 'N', c, n, k, -1, left, ld, product, ld, f->sa, f->lda);
  OF(triangular_product)('L', 'L', c, 'U', n, k, f->a, f->kept_lda, left, ld);
  OF(add_triangle_of_product)('U', 'N', 'N', c, n, k, -1, left, ld, right, ld, f->sa, f->lda);
  free(left);
  free(right);
  free(product);
}

/* B = A^-1 B, and the factors in place of A: both of the above, but the cotangent of X goes to A at once.
     dX = A^-1 (dB - dA X)      W = A^-H Xbar, Abar = (that of the factors) - W X^H, Bbar = W
   Without right-hand sides some libraries factorise A, and some do nothing: the pivots tell. */

static int OF(solve)(const int *n, const int *nrhs, SCALAR *a, const int *lda, int *ipiv, SCALAR *b, const int *ldb,
                     int *info) {
  int empty = *n > 0 && *nrhs == 0;
  if (empty) ipiv[0] = 0;
  BLAS(gesv)(n, nrhs, a, lda, ipiv, b, ldb, info);
  return !empty || ipiv[0] != 0;
}

void RULE(gesv, _jvp)(const int *n, const int *nrhs, SCALAR *a, const int *lda, int *ipiv, SCALAR *b, const int *ldb,
                      int *info, SCALAR *sa, SCALAR *sb) {
  int ignored;
  if (!OF(solve)(n, nrhs, a, lda, ipiv, b, ldb, info)) return;
  if (sa && sb) OF(product)('N', 'N', *n, *nrhs, *n, -1, sa, *lda, b, *ldb, sb, *ldb);
  if (sb) BLAS(getrs)(&je_as_it_is, n, nrhs, a, lda, ipiv, sb, ldb, &ignored);
  if (sa) OF(lu_tangent)(*n, *n, a, *lda, ipiv, sa);
}

void *RULE(gesv, _forward)(const int *n, const int *nrhs, SCALAR *a, const int *lda, int *ipiv, SCALAR *b,
                           const int *ldb, int *info, SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(factor_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->n = *n, f->nrhs = *nrhs, f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb;
  f->sa = sa, f->sb = sb, f->a = a, f->b = b;
  if (!OF(solve)(n, nrhs, a, lda, ipiv, b, ldb, info)) f->sa = f->sb = sa = sb = 0;
  if (sa || sb) {
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', *n, *n, a, &f->kept_lda);
    f->ipiv = OF(keep_pivots)(arena, *n, ipiv);
  }
  if (sa && sb) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

void RULE(gesv, _reverse)(void *frame) {
  struct OF(factor_frame) *f = frame;
  char c = OF(adjoint)('N');
  if (f->sb) OF(lu_solve)(c, f, f->sb, f->ldb);
  if (f->sa) OF(lu_cotangent)(f->n, f->n, f->a, f->kept_lda, f->ipiv, f->sa, f->lda);
  if (f->sa && f->sb) OF(product)('N', c, f->n, f->n, f->nrhs, -1, f->sb, f->ldb, f->b, f->kept_ldb, f->sa, f->lda);
}

/* B = op(A)^-1 B for a triangular A: trsm, unless a number on the diagonal is zero. Then B stays as it is. */

void RULE(trtrs, _jvp)(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs,
                       const SCALAR *a, const int *lda, SCALAR *b, const int *ldb, int *info, const SCALAR *sa,
                       SCALAR *sb) {
  BLAS(trtrs)(uplo, trans, diag, n, nrhs, a, lda, b, ldb, info);
  if (!sb || *info != 0) return;
  char op = OF(operation)(trans);
  if (sa) {
    SCALAR *t = OF(new_tangent_product)('L', je_upper(uplo), op, je_upper(diag), *n, *nrhs, sa, *lda, b, *ldb);
    OF(add_part)('A', 0, *n, *nrhs, -1, t, je_at_least_one(*n), sb, *ldb);
    free(t);
  }
  OF(triangular_solve)('L', je_upper(uplo), op, je_upper(diag), *n, *nrhs, a, *lda, sb, *ldb);
}

void *RULE(trtrs, _forward)(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs,
                            const SCALAR *a, const int *lda, SCALAR *b, const int *ldb, int *info, SCALAR *sa,
                            SCALAR *sb, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->side = 'L', f->uplo = je_upper(uplo), f->opa = OF(operation)(trans), f->diag = je_upper(diag);
  f->m = *n, f->n = *nrhs, f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb;
  f->sa = sa, f->a = a, f->b = b;
  BLAS(trtrs)(uplo, trans, diag, n, nrhs, a, lda, b, ldb, info);
  f->sb = *info == 0 ? sb : 0;
  if (f->sb) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), f->uplo, *n, *n, a, &f->kept_lda);
  if (f->sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

void RULE(trtrs, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sb) return;
  OF(triangular_solve)('L', f->uplo, OF(adjoint)(f->opa), f->diag, f->m, f->n, f->a, f->kept_lda, f->sb, f->ldb);
  if (f->sa) OF(add_triangular_cotangent)(f, -1, f->sb, f->ldb);
}

/* Exchanges of rows: the shadow takes part, and is put back in the opposite order. */

void RULE(laswp, _jvp)(const int *n, SCALAR *a, const int *lda, const int *k1, const int *k2, const int *ipiv,
                       const int *incx, SCALAR *sa) {
  BLAS(laswp)(n, a, lda, k1, k2, ipiv, incx);
  if (sa) BLAS(laswp)(n, sa, lda, k1, k2, ipiv, incx);
}

struct OF(laswp_frame) {
  int n, lda, k1, k2, back;
  const int *ipiv;
  SCALAR *sa;
};

void *RULE(laswp, _forward)(const int *n, SCALAR *a, const int *lda, const int *k1, const int *k2, const int *ipiv,
                            const int *incx, SCALAR *sa, long stable, void *arena) {
  struct OF(laswp_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  int step = *incx < 0 ? -*incx : *incx;
  f->n = *n, f->lda = *lda, f->k1 = *k1, f->k2 = *k2, f->back = -*incx, f->sa = sa;
  if (sa) f->ipiv = OF(keep_pivots)(arena, *k1 + (*k2 - *k1) * step, ipiv);
  BLAS(laswp)(n, a, lda, k1, k2, ipiv, incx);
  return f;
}

void RULE(laswp, _reverse)(void *frame) {
  struct OF(laswp_frame) *f = frame;
  if (f->sa) BLAS(laswp)(&f->n, f->sa, &f->lda, &f->k1, &f->k2, f->ipiv, &f->back);
}
