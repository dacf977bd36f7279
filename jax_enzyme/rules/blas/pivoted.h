/* A P = Q R with the columns of A in the order in which the routine takes them: a derivative is that of Q R of these
   columns (`orthogonal.h`). */
#ifndef COMPLEX

extern void BLAS(geqp3)(const int *, const int *, SCALAR *, const int *, int *, SCALAR *, SCALAR *, const int *, int *);

/* Column j becomes what column order[j] was, or the other way round. */
static void OF(order_columns)(int m, int n, const int *order, int back, SCALAR *a, int lda) {
  int ld = je_at_least_one(m);
  SCALAR *old = OF(new_copy)('A', m, n, a, lda);
  for (int j = 0; j < n; j++) {
    index_t there = order[j] - 1, to = back ? there : j, from = back ? j : there;
    OF(copy_part)('A', m, 1, old + from * ld, ld, a + to * lda, lda);
  }
  free(old);
}

void RULE(geqp3, _jvp)(const int *m, const int *n, SCALAR *a, const int *lda, int *jpvt, SCALAR *tau, SCALAR *work,
                       const int *lwork, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork) {
  int is_wanted = sa && *lwork != -1;
  SCALAR *old = is_wanted ? OF(new_copy)('A', *m, *n, a, *lda) : 0;
  BLAS(geqp3)(m, n, a, lda, jpvt, tau, work, lwork, info);
  if (swork) *swork = 0;
  if (is_wanted) {
    OF(order_columns)(*m, *n, jpvt, 0, old, je_at_least_one(*m));
    OF(order_columns)(*m, *n, jpvt, 0, sa, *lda);
  }
  if (*lwork != -1) OF(triangle_tangent)(*m, *n, a, *lda, tau, old, sa, stau);
  free(old);
}

struct OF(pivoted) {
  struct OF(reflections) triangle;
  const int *order;
};

void *RULE(geqp3, _forward)(const int *m, const int *n, SCALAR *a, const int *lda, int *jpvt, SCALAR *tau, SCALAR *work,
                            const int *lwork, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork, long stable,
                            void *arena) {
  struct OF(pivoted) *f = je_arena_allocate(arena, sizeof *f);
  BLAS(geqp3)(m, n, a, lda, jpvt, tau, work, lwork, info);
  OF(triangle_kept)(&f->triangle, *m, *n, *lwork == -1, a, *lda, tau, sa, stau, swork, stable, arena);
  f->order = sa && *lwork != -1 ? OF(keep_pivots)(arena, *n, jpvt) : 0;
  return f;
}

void RULE(geqp3, _reverse)(void *frame) {
  struct OF(pivoted) *f = frame;
  OF(triangle_cotangent)(&f->triangle);
  if (f->order) OF(order_columns)(f->triangle.m, f->triangle.n, f->order, 1, f->triangle.sa, f->triangle.lda);
}

#endif
