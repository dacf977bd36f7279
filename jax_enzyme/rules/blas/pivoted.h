/* A P = Q R with the columns of A in the order in which the routine takes them: a derivative is that of Q R of these
   columns (`orthogonal.h`). */

extern void BLAS(gesvd)(const char *, const char *, const int *, const int *, SCALAR *, const int *, REAL *, SCALAR *,
                        const int *, SCALAR *, const int *, SCALAR *, const int *ROOM_TYPE, int *);
extern void BLAS(geqp3)(const int *, const int *, SCALAR *, const int *, int *, SCALAR *, SCALAR *,
                        const int *ROOM_TYPE, int *);

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
                       const int *lwork ROOM, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork RWORK) {
  int is_wanted = sa && *lwork != -1;
  SCALAR *old = is_wanted ? OF(new_copy)('A', *m, *n, a, *lda) : 0;
  BLAS(geqp3)(m, n, a, lda, jpvt, tau, work, lwork ROOM_ARGUMENT, info);
  OF(forget_work)(swork, SRWORK);
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
  REAL *srwork;
};

void *RULE(geqp3, _forward)(const int *m, const int *n, SCALAR *a, const int *lda, int *jpvt, SCALAR *tau, SCALAR *work,
                            const int *lwork ROOM, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork RWORK,
                            long stable, void *arena) {
  struct OF(pivoted) *f = je_arena_allocate(arena, sizeof *f);
  BLAS(geqp3)(m, n, a, lda, jpvt, tau, work, lwork ROOM_ARGUMENT, info);
  OF(triangle_kept)(&f->triangle, *m, *n, *lwork == -1, a, *lda, tau, sa, stau, swork, stable, arena);
  f->srwork = SRWORK;
  f->order = sa && *lwork != -1 ? OF(keep_pivots)(arena, *n, jpvt) : 0;
  return f;
}

void RULE(geqp3, _reverse)(void *frame) {
  struct OF(pivoted) *f = frame;
  OF(triangle_cotangent)(&f->triangle);
  if (f->srwork) *f->srwork = 0;
  if (f->order) OF(order_columns)(f->triangle.m, f->triangle.n, f->order, 1, f->triangle.sa, f->triangle.lda);
}

/* How many columns of a triangle come before the ratio of its singular values is less than `rcond`: the more columns,
   the less it is. */
static int OF(rank_of_triangle)(int k, const SCALAR *a, int lda, REAL rcond) {
  int low = 0, high = k, tried = k, ld = je_at_least_one(k), room = 6 * k + 64, info;
  SCALAR *work = OF(new)(room), none;
  REAL *s = OF(new_reals)(k), *rwork = OF(new_reals)(5 * k);
  while (low < high) {
    SCALAR *part = OF(new_copy)('U', tried, tried, a, lda);
    ld = je_at_least_one(tried);
    char no_vectors = 'N';
    BLAS(gesvd)(&no_vectors, &no_vectors, &tried, &tried, part, &ld, s, &none, &je_one_int, &none, &je_one_int, work,
                &room ROOM_ARGUMENT, &info);
    free(part);
    if (s[0] > 0 && s[0] * rcond <= s[tried - 1])
      low = tried;
    else
      high = tried - 1;
    tried = low + (high - low + 1) / 2;
  }
  free(rwork);
  free(s);
  free(work);
  return low;
}

/* The smallest of the least squares solutions by the columns that are taken first, as many as the rank is. What is left
   of others below these does not count. */
void BLAS(gelsy)(const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 int *jpvt, const REAL *rcond, int *rank, SCALAR *work, const int *lwork ROOM, int *info) {
  int k = *m < *n ? *m : *n, room = 8 * (*m + *n + *nrhs) + 64;
  char upper = 'U', lower = 'L', plain = 'N', turned = OF(adjoint)('N');
  *info = 0;
  if (OF(asks)(lwork, k + 3 * *n + *nrhs + 1, work)) return;
  *rank = 0;
  if (k == 0 || *nrhs == 0) return;
  SCALAR *tau = OF(new)(k), *space = OF(new)(room), *x = OF(new)((index_t)je_at_least_one(*n) * *nrhs);
  BLAS(geqp3)(m, n, a, lda, jpvt, tau, space, &room ROOM_ARGUMENT, info);
  *rank = OF(rank_of_triangle)(k, a, *lda, *rcond);
  BLAS(ABOUT_Q(mqr))(&je_left, &turned, m, nrhs, &k, a, lda, tau, b, ldb, space, &room, info);
  if (*rank == *n) {
    BLAS(trsm)(&je_left, &upper, &plain, &plain, n, nrhs, &OF(one), a, lda, b, ldb);
  } else {
    int ld = je_at_least_one(*rank);
    SCALAR *rows = OF(new_copy)('U', *rank, *n, a, *lda);
    if (*rank > 0) {
      BLAS(gelqf)(rank, n, rows, &ld, tau, space, &room, info);
      BLAS(trsm)(&je_left, &lower, &plain, &plain, rank, nrhs, &OF(one), rows, &ld, b, ldb);
    }
    for (index_t r = 0; r < *nrhs; r++)
      for (int i = *rank; i < *n; i++) b[i + r * *ldb] = 0;
    if (*rank > 0) BLAS(ABOUT_Q(mlq))(&je_left, &turned, n, nrhs, rank, rows, &ld, tau, b, ldb, space, &room, info);
    free(rows);
  }
  for (index_t r = 0; r < *nrhs; r++)
    for (int i = 0; i < *n; i++) x[jpvt[i] - 1 + r * *n] = b[i + r * *ldb];
  OF(copy_part)('A', *n, *nrhs, x, je_at_least_one(*n), b, *ldb);
  free(x);
  free(space);
  free(tau);
}
