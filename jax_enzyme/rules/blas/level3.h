/* Matrices. G stands for the cotangent of the result before the call is reversed; triangles are those that are stored.
   The formulas are those of M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
   differentiation (2008), section 2, with BLAS's scalars and storage put in. */

struct OF(matrix_frame) {
  int m, n, k, lda, kept_lda, ldb, kept_ldb, ldc, kept_ldc;
  SCALAR alpha, beta;
  const SCALAR *a, *b, *c;
  SCALAR *salpha, *sa, *sb, *sbeta, *sc;
  char opa, opb, side, uplo, diag;
};

/* C = alpha op(A) op(B) + beta C:
     op(A)bar += conj(alpha) G op(B)^H, op(B)bar += conj(alpha) op(A)^H G, alphabar += <op(A) op(B), G>,
     betabar += <C, G>, Cbar = conj(beta) G */

void RULE(gemm, _jvp)(const char *transa, const char *transb, const int *m, const int *n, const int *k,
                      const SCALAR *alpha, const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb,
                      const SCALAR *beta, SCALAR *c, const int *ldc, const SCALAR *salpha, const SCALAR *sa,
                      const SCALAR *sb, const SCALAR *sbeta, SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(gemm)(transa, transb, m, n, k, alpha, sa, lda, b, ldb, beta, sc, ldc);
    else
      OF(scale_part)('A', *m, *n, *beta, sc, *ldc);
    if (sb) BLAS(gemm)(transa, transb, m, n, k, alpha, a, lda, sb, ldb, &OF(one), sc, ldc);
    if (salpha) BLAS(gemm)(transa, transb, m, n, k, salpha, a, lda, b, ldb, &OF(one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)('A', 0, *m, *n, *sbeta, c, *ldc, sc, *ldc);
  }
  BLAS(gemm)(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void *RULE(gemm, _forward)(const char *transa, const char *transb, const int *m, const int *n, const int *k,
                           const SCALAR *alpha, const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb,
                           const SCALAR *beta, SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa, SCALAR *sb,
                           SCALAR *sbeta, SCALAR *sc, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->opa = OF(operation)(transa), f->opb = OF(operation)(transb), f->m = *m, f->n = *n, f->k = *k;
  f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb, f->ldc = f->kept_ldc = *ldc;
  f->alpha = *alpha, f->beta = *beta, f->a = a, f->b = b, f->c = c;
  f->salpha = salpha, f->sa = sa, f->sb = sb, f->sbeta = sbeta, f->sc = sc;
  if (sc) {
    int rows_a = f->opa == 'N' ? *m : *k, columns_a = f->opa == 'N' ? *k : *m;
    int rows_b = f->opb == 'N' ? *k : *n, columns_b = f->opb == 'N' ? *n : *k;
    if (sb || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', rows_a, columns_a, a, &f->kept_lda);
    if (sa || salpha) f->b = OF(keep_part)(arena, je_is_stable(stable, 2), 'A', rows_b, columns_b, b, &f->kept_ldb);
    if (sbeta) f->c = OF(keep_part)(arena, 0, 'A', *m, *n, c, &f->kept_ldc);
  }
  BLAS(gemm)(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  return f;
}

void RULE(gemm, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sc) return;
  int m = f->m, n = f->n, k = f->k;
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha) {
    int ld = je_at_least_one(m);
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(gemm)(&f->opa, &f->opb, &m, &n, &k, &OF(one), f->a, &f->kept_lda, f->b, &f->kept_ldb, &OF(zero), t, &ld);
    *f->salpha += OF(inner_part)('A', m, n, t, ld, f->sc, f->ldc);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner_part)('A', m, n, f->c, f->kept_ldc, f->sc, f->ldc);
  if (f->sa) {
    char op = OF(adjoint)(f->opb);
    if (f->opa == 'N')
      OF(product)('N', op, m, k, n, alpha, f->sc, f->ldc, f->b, f->kept_ldb, f->sa, f->lda);
    else if (f->opa == 'T')
      OF(product)(OF(transposed)(op), 'T', k, m, n, alpha, f->b, f->kept_ldb, f->sc, f->ldc, f->sa, f->lda);
    else
      OF(product)(f->opb, 'C', k, m, n, f->alpha, f->b, f->kept_ldb, f->sc, f->ldc, f->sa, f->lda);
  }
  if (f->sb) {
    char op = OF(adjoint)(f->opa);
    if (f->opb == 'N')
      OF(product)(op, 'N', k, n, m, alpha, f->a, f->kept_lda, f->sc, f->ldc, f->sb, f->ldb);
    else if (f->opb == 'T')
      OF(product)('T', OF(transposed)(op), n, k, m, alpha, f->sc, f->ldc, f->a, f->kept_lda, f->sb, f->ldb);
    else
      OF(product)('C', f->opa, n, k, m, f->alpha, f->sc, f->ldc, f->a, f->kept_lda, f->sb, f->ldb);
  }
  OF(scale_part)('A', m, n, CONJ(f->beta), f->sc, f->ldc);
}

/* C = alpha S B + beta C, or alpha B S + beta C, S symmetric and stored as a triangle:
     Bbar += conj(alpha) conj(S) G or conj(alpha) G conj(S); what conj(alpha) G B^H or conj(alpha) B^H G has at (i, j)
   and (j, i) goes to the one that is stored; alphabar += <S B, G>, betabar += <C, G>, Cbar = conj(beta) G */

void RULE(symm, _jvp)(const char *side, const char *uplo, const int *m, const int *n, const SCALAR *alpha,
                      const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta, SCALAR *c,
                      const int *ldc, const SCALAR *salpha, const SCALAR *sa, const SCALAR *sb, const SCALAR *sbeta,
                      SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(symm)(side, uplo, m, n, alpha, sa, lda, b, ldb, beta, sc, ldc);
    else
      OF(scale_part)('A', *m, *n, *beta, sc, *ldc);
    if (sb) BLAS(symm)(side, uplo, m, n, alpha, a, lda, sb, ldb, &OF(one), sc, ldc);
    if (salpha) BLAS(symm)(side, uplo, m, n, salpha, a, lda, b, ldb, &OF(one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)('A', 0, *m, *n, *sbeta, c, *ldc, sc, *ldc);
  }
  BLAS(symm)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}

static struct OF(matrix_frame) * OF(new_symm_frame)(const char *side, const char *uplo, const int *m, const int *n,
                                                    const SCALAR *alpha, const SCALAR *a, const int *lda,
                                                    const SCALAR *b, const int *ldb, const SCALAR *beta,
                                                    const SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa,
                                                    SCALAR *sb, SCALAR *sbeta, SCALAR *sc, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->side = je_upper(side), f->uplo = je_upper(uplo), f->m = *m, f->n = *n;
  f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb, f->ldc = f->kept_ldc = *ldc;
  f->alpha = *alpha, f->beta = *beta, f->a = a, f->b = b, f->c = c;
  f->salpha = salpha, f->sa = sa, f->sb = sb, f->sbeta = sbeta, f->sc = sc;
  if (sc) {
    int order = f->side == 'L' ? *m : *n;
    if (sb || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), f->uplo, order, order, a, &f->kept_lda);
    if (sa || salpha) f->b = OF(keep_part)(arena, je_is_stable(stable, 2), 'A', *m, *n, b, &f->kept_ldb);
    if (sbeta) f->c = OF(keep_part)(arena, 0, 'A', *m, *n, c, &f->kept_ldc);
  }
  return f;
}

void *RULE(symm, _forward)(const char *side, const char *uplo, const int *m, const int *n, const SCALAR *alpha,
                           const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta,
                           SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa, SCALAR *sb, SCALAR *sbeta, SCALAR *sc,
                           long stable, void *arena) {
  void *f = OF(new_symm_frame)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, salpha, sa, sb, sbeta, sc, stable,
                               arena);
  BLAS(symm)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
  return f;
}

void RULE(symm, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sc) return;
  int m = f->m, n = f->n;
  if (f->salpha) {
    int ld = je_at_least_one(m);
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(symm)(&f->side, &f->uplo, &m, &n, &OF(one), f->a, &f->kept_lda, f->b, &f->kept_ldb, &OF(zero), t, &ld);
    *f->salpha += OF(inner_part)('A', m, n, t, ld, f->sc, f->ldc);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner_part)('A', m, n, f->c, f->kept_ldc, f->sc, f->ldc);
  SCALAR alpha = CONJ(f->alpha);
  if (f->sa) {
    int ld = f->kept_ldb;
    const SCALAR *b = OF(conjugate_of)(m, n, f->b, &ld);
    if (f->side == 'L')
      OF(add_symmetric_product)(f->uplo, 'N', m, n, alpha, f->sc, f->ldc, b, ld, f->sa, f->lda);
    else
      OF(add_symmetric_product)(f->uplo, 'T', n, m, alpha, b, ld, f->sc, f->ldc, f->sa, f->lda);
    OF(release)(b);
  }
  if (f->sb) {
    int ld = f->ldc;
    const SCALAR *g = OF(conjugate_of)(m, n, f->sc, &ld);
    OF(conjugate_part)(m, n, f->sb, f->ldb);
    BLAS(symm)(&f->side, &f->uplo, &m, &n, &f->alpha, f->a, &f->kept_lda, g, &ld, &OF(one), f->sb, &f->ldb);
    OF(conjugate_part)(m, n, f->sb, f->ldb);
    OF(release)(g);
  }
  OF(scale_part)('A', m, n, CONJ(f->beta), f->sc, f->ldc);
}

/* C = alpha A A^T + beta C, or alpha A^T A + beta C, a triangle of it. With S the symmetric matrix that the triangle of
   G stands for and D the diagonal of G: Abar += conj(alpha) (S + D) conj(A) or conj(alpha) conj(A) (S + D), Cbar =
   conj(beta) G */

/* bbar += alpha (S + D) conj(a), n x k, or alpha conj(a) (S + D), k x n. */
static void OF(add_symmetrised)(char uplo, char op, int n, int k, SCALAR alpha, const SCALAR *g, int ldg,
                                const SCALAR *of, int lda, SCALAR *bbar, int ldb) {
  const SCALAR *a = op == 'N' ? OF(conjugate_of)(n, k, of, &lda) : OF(conjugate_of)(k, n, of, &lda);
  if (op == 'N')
    BLAS(symm)(&je_left, &uplo, &n, &k, &alpha, g, &ldg, a, &lda, &OF(one), bbar, &ldb);
  else
    BLAS(symm)(&je_right, &uplo, &k, &n, &alpha, g, &ldg, a, &lda, &OF(one), bbar, &ldb);
  for (int i = 0; i < n; i++) {
    SCALAR factor = alpha * g[i + (index_t)i * ldg];
    if (op == 'N')
      BLAS(axpy)(&k, &factor, a + i, &lda, bbar + i, &ldb);
    else
      BLAS(axpy)(&k, &factor, a + (index_t)i * lda, &je_one_int, bbar + (index_t)i * ldb, &je_one_int);
  }
  OF(release)(a);
}

void RULE(syrk, _jvp)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                      const SCALAR *a, const int *lda, const SCALAR *beta, SCALAR *c, const int *ldc,
                      const SCALAR *salpha, const SCALAR *sa, const SCALAR *sbeta, SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(syr2k)(uplo, trans, n, k, alpha, sa, lda, a, lda, beta, sc, ldc);
    else
      OF(scale_part)(je_upper(uplo), *n, *n, *beta, sc, *ldc);
    if (salpha) BLAS(syrk)(uplo, trans, n, k, salpha, a, lda, &OF(one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)(je_upper(uplo), 0, *n, *n, *sbeta, c, *ldc, sc, *ldc);
  }
  BLAS(syrk)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
}

void *RULE(syrk, _forward)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                           const SCALAR *a, const int *lda, const SCALAR *beta, SCALAR *c, const int *ldc,
                           SCALAR *salpha, SCALAR *sa, SCALAR *sbeta, SCALAR *sc, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->opa = OF(operation)(trans), f->n = *n, f->k = *k;
  f->lda = f->kept_lda = *lda, f->ldc = f->kept_ldc = *ldc, f->alpha = *alpha, f->beta = *beta, f->a = a, f->c = c;
  f->salpha = salpha, f->sa = sa, f->sbeta = sbeta, f->sc = sc;
  if (sc) {
    int rows = f->opa == 'N' ? *n : *k, columns = f->opa == 'N' ? *k : *n;
    if (sa || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', rows, columns, a, &f->kept_lda);
    if (sbeta) f->c = OF(keep_part)(arena, 0, f->uplo, *n, *n, c, &f->kept_ldc);
  }
  BLAS(syrk)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
  return f;
}

void RULE(syrk, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sc) return;
  int n = f->n, k = f->k;
  if (f->salpha) {
    int ld = je_at_least_one(n);
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(syrk)(&f->uplo, &f->opa, &n, &k, &OF(one), f->a, &f->kept_lda, &OF(zero), t, &ld);
    *f->salpha += OF(inner_part)(f->uplo, n, n, t, ld, f->sc, f->ldc);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner_part)(f->uplo, n, n, f->c, f->kept_ldc, f->sc, f->ldc);
  if (f->sa)
    OF(add_symmetrised)(f->uplo, f->opa, n, k, CONJ(f->alpha), f->sc, f->ldc, f->a, f->kept_lda, f->sa, f->lda);
  OF(scale_part)(f->uplo, n, n, CONJ(f->beta), f->sc, f->ldc);
}

/* C = alpha (A B^T + B A^T) + beta C, or alpha (A^T B + B^T A) + beta C, a triangle of it:
     Abar += conj(alpha) (S + D) conj(B) or conj(alpha) conj(B) (S + D), Bbar likewise with A, Cbar = conj(beta) G */

void RULE(syr2k, _jvp)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                       const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta, SCALAR *c,
                       const int *ldc, const SCALAR *salpha, const SCALAR *sa, const SCALAR *sb, const SCALAR *sbeta,
                       SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(syr2k)(uplo, trans, n, k, alpha, sa, lda, b, ldb, beta, sc, ldc);
    else
      OF(scale_part)(je_upper(uplo), *n, *n, *beta, sc, *ldc);
    if (sb) BLAS(syr2k)(uplo, trans, n, k, alpha, a, lda, sb, ldb, &OF(one), sc, ldc);
    if (salpha) BLAS(syr2k)(uplo, trans, n, k, salpha, a, lda, b, ldb, &OF(one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)(je_upper(uplo), 0, *n, *n, *sbeta, c, *ldc, sc, *ldc);
  }
  BLAS(syr2k)(uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void *RULE(syr2k, _forward)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                            const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta,
                            SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa, SCALAR *sb, SCALAR *sbeta,
                            SCALAR *sc, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->opa = OF(operation)(trans), f->n = *n, f->k = *k;
  f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb, f->ldc = f->kept_ldc = *ldc;
  f->alpha = *alpha, f->beta = *beta, f->a = a, f->b = b, f->c = c;
  f->salpha = salpha, f->sa = sa, f->sb = sb, f->sbeta = sbeta, f->sc = sc;
  if (sc) {
    int rows = f->opa == 'N' ? *n : *k, columns = f->opa == 'N' ? *k : *n;
    if (sb || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', rows, columns, a, &f->kept_lda);
    if (sa || salpha) f->b = OF(keep_part)(arena, je_is_stable(stable, 2), 'A', rows, columns, b, &f->kept_ldb);
    if (sbeta) f->c = OF(keep_part)(arena, 0, f->uplo, *n, *n, c, &f->kept_ldc);
  }
  BLAS(syr2k)(uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  return f;
}

void RULE(syr2k, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sc) return;
  int n = f->n, k = f->k;
  if (f->salpha) {
    int ld = je_at_least_one(n);
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(syr2k)(&f->uplo, &f->opa, &n, &k, &OF(one), f->a, &f->kept_lda, f->b, &f->kept_ldb, &OF(zero), t, &ld);
    *f->salpha += OF(inner_part)(f->uplo, n, n, t, ld, f->sc, f->ldc);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner_part)(f->uplo, n, n, f->c, f->kept_ldc, f->sc, f->ldc);
  if (f->sa)
    OF(add_symmetrised)(f->uplo, f->opa, n, k, CONJ(f->alpha), f->sc, f->ldc, f->b, f->kept_ldb, f->sa, f->lda);
  if (f->sb)
    OF(add_symmetrised)(f->uplo, f->opa, n, k, CONJ(f->alpha), f->sc, f->ldc, f->a, f->kept_lda, f->sb, f->ldb);
  OF(scale_part)(f->uplo, n, n, CONJ(f->beta), f->sc, f->ldc);
}

/* Triangular A, from the left; from the right the factors change places. Only the stored triangle has a cotangent.

   B = alpha op(A) B:     W = op(A)^H G, op(A)bar += conj(alpha) G B^H with the old B, alphabar += <B, W>,
                          Bbar = conj(alpha) W
   B = alpha op(A)^-1 B:  W = op(A)^-H G, op(A)bar -= W B^H with the new B, alphabar += <B, W> with the old one,
                          Bbar = conj(alpha) W */

void RULE(trmm, _jvp)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                      const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                      const SCALAR *salpha, const SCALAR *sa, SCALAR *sb) {
  if (sb) {
    BLAS(trmm)(side, uplo, trans, diag, m, n, alpha, a, lda, sb, ldb);
    if (sa) {
      SCALAR *t = OF(new_tangent_product)(je_upper(side), je_upper(uplo), OF(operation)(trans), je_upper(diag), *m, *n,
                                          sa, *lda, b, *ldb);
      OF(add_part)('A', 0, *m, *n, *alpha, t, je_at_least_one(*m), sb, *ldb);
      free(t);
    }
    if (salpha) {
      int ld = je_at_least_one(*m);
      SCALAR *t = OF(new)((index_t)ld * *n);
      OF(copy_part)('A', *m, *n, b, *ldb, t, ld);
      BLAS(trmm)(side, uplo, trans, diag, m, n, &OF(one), a, lda, t, &ld);
      OF(add_part)('A', 0, *m, *n, *salpha, t, ld, sb, *ldb);
      free(t);
    }
  }
  BLAS(trmm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
}

void RULE(trsm, _jvp)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                      const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                      const SCALAR *salpha, const SCALAR *sa, SCALAR *sb) {
  if (sb) {
    OF(scale_part)('A', *m, *n, *alpha, sb, *ldb);
    if (salpha) OF(add_part)('A', 0, *m, *n, *salpha, b, *ldb, sb, *ldb);
  }
  BLAS(trsm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
  if (sb) {
    if (sa) {
      SCALAR *t = OF(new_tangent_product)(je_upper(side), je_upper(uplo), OF(operation)(trans), je_upper(diag), *m, *n,
                                          sa, *lda, b, *ldb);
      OF(add_part)('A', 0, *m, *n, -1, t, je_at_least_one(*m), sb, *ldb);
      free(t);
    }
    BLAS(trsm)(side, uplo, trans, diag, m, n, &OF(one), a, lda, sb, ldb);
  }
}

static struct OF(matrix_frame) *
    OF(new_triangular_frame)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                             const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda, const SCALAR *b,
                             const int *ldb, SCALAR *salpha, SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(matrix_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->side = je_upper(side), f->uplo = je_upper(uplo), f->opa = OF(operation)(trans), f->diag = je_upper(diag);
  f->m = *m, f->n = *n, f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = f->kept_ldc = *ldb, f->alpha = *alpha;
  f->salpha = salpha, f->sa = sa, f->sb = sb, f->a = a, f->b = f->c = b;
  int order = f->side == 'L' ? *m : *n;
  if (sb) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), f->uplo, order, order, a, &f->kept_lda);
  return f;
}

void *RULE(trmm, _forward)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                           const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda, SCALAR *b,
                           const int *ldb, SCALAR *salpha, SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(matrix_frame) *f =
      OF(new_triangular_frame)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, salpha, sa, sb, stable, arena);
  if (sb && (sa || salpha)) f->b = f->c = OF(keep_part)(arena, 0, 'A', *m, *n, b, &f->kept_ldb);
  f->kept_ldc = f->kept_ldb;
  BLAS(trmm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
  return f;
}

void *RULE(trsm, _forward)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                           const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda, SCALAR *b,
                           const int *ldb, SCALAR *salpha, SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(matrix_frame) *f =
      OF(new_triangular_frame)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, salpha, sa, sb, stable, arena);
  if (sb && salpha) f->c = OF(keep_part)(arena, 0, 'A', *m, *n, b, &f->kept_ldc);
  BLAS(trsm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
  if (sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 2), 'A', *m, *n, b, &f->kept_ldb);
  return f;
}

/* The cotangent of op(A) is alpha u b^H, or alpha b^H u where A is on the right. */
static void OF(add_triangular_cotangent)(struct OF(matrix_frame) * f, SCALAR alpha, const SCALAR *u, int ldu) {
  int left = f->side == 'L', n = left ? f->m : f->n, k = left ? f->n : f->m;
  char c = OF(adjoint)('N');
  if (f->opa == 'N') {
    if (left)
      OF(add_triangle_of_product)(f->uplo, f->diag, 'N', c, n, k, alpha, u, ldu, f->b, f->kept_ldb, f->sa, f->lda);
    else
      OF(add_triangle_of_product)(f->uplo, f->diag, c, 'N', n, k, alpha, f->b, f->kept_ldb, u, ldu, f->sa, f->lda);
    return;
  }
  /* (u b^H)^T = conj(b) u^T, (u b^H)^H = b u^H */
  char as_it_is = f->opa == 'C' ? 'N' : OF(adjoint)('T'), turned = f->opa;
  SCALAR factor = f->opa == 'C' ? CONJ(alpha) : alpha;
  if (left)
    OF(add_triangle_of_product)(f->uplo, f->diag, as_it_is, turned, n, k, factor, f->b, f->kept_ldb, u, ldu, f->sa,
                                f->lda);
  else
    OF(add_triangle_of_product)(f->uplo, f->diag, turned, as_it_is, n, k, factor, u, ldu, f->b, f->kept_ldb, f->sa,
                                f->lda);
}

void RULE(trmm, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sb) return;
  if (f->sa) OF(add_triangular_cotangent)(f, CONJ(f->alpha), f->sb, f->ldb);
  OF(triangular_product)(f->side, f->uplo, OF(adjoint)(f->opa), f->diag, f->m, f->n, f->a, f->kept_lda, f->sb, f->ldb);
  if (f->salpha) *f->salpha += OF(inner_part)('A', f->m, f->n, f->c, f->kept_ldc, f->sb, f->ldb);
  OF(scale_part)('A', f->m, f->n, CONJ(f->alpha), f->sb, f->ldb);
}

void RULE(trsm, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sb) return;
  OF(triangular_solve)(f->side, f->uplo, OF(adjoint)(f->opa), f->diag, f->m, f->n, f->a, f->kept_lda, f->sb, f->ldb);
  if (f->sa) OF(add_triangular_cotangent)(f, -1, f->sb, f->ldb);
  if (f->salpha) *f->salpha += OF(inner_part)('A', f->m, f->n, f->c, f->kept_ldc, f->sb, f->ldb);
  OF(scale_part)('A', f->m, f->n, CONJ(f->alpha), f->sb, f->ldb);
}
