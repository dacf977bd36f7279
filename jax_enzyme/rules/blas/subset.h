/* Some of the eigenvalues of symmetric and Hermitian matrices, and their vectors: the formulas of `spectral.h`, of
   which the vectors are all that the matrix has, those that the routine gives among them. Which ones it gives is no
   question of derivatives, nor is how exactly. */

#define SUBSET_PARAMETERS                                                                                              \
  const char *jobz, const char *range, const char *uplo, const int *n, SCALAR *a, const int *lda, const REAL *vl,      \
      const REAL *vu, const int *il, const int *iu, const REAL *abstol, int *m, REAL *w, SCALAR *z, const int *ldz
#define SUBSET_SHADOWS SCALAR *sa, REAL *svl, REAL *svu, REAL *sabstol, REAL *sw, SCALAR *sz, SCALAR *swork RWORK
#define SUBSET_ARGUMENTS jobz, range, uplo, n, a, lda, vl, vu, il, iu, abstol, m, w, z, ldz

struct OF(subset) {
  int n, lda, ldz, m, first, failed;
  char uplo;
  const SCALAR *v;
  const REAL *w;
  SCALAR *sa, *sz, *swork;
  REAL *sw, *srwork;
};

/* All vectors and values of the matrix in the place of the vectors; which is the first pair that the call has given. */
static int OF(subset_solved)(const char *jobz, const char *range, char uplo, int n, int m, REAL vl, int il,
                             const SCALAR *z, int ldz, SCALAR *v, REAL *w, int *failed) {
  int ld = je_at_least_one(n), first = je_upper(range) == 'I' ? il - 1 : 0;
  if (*failed) return 0;
  OF(eigenvectors)(&je_vectors, &uplo, n, v, ld, w, failed);
  while (je_upper(range) == 'V' && first < n - m && w[first] <= vl) first++;
  if (je_upper(jobz) == 'V') OF(copy_part)('A', n, m, z, ldz, v + (index_t)first * ld, ld);
  return first;
}

static void OF(subset_tangent)(struct OF(subset) * c) {
  int n = c->n, m = c->m, ld = je_at_least_one(n);
  REAL value = c->failed ? (REAL)__builtin_nan("") : 0;
  if (!c->sa || c->failed) {
    if (c->sa) OF(fill_part)(c->uplo, 0, n, n, (SCALAR)value, c->sa, c->lda);
    if (c->sw) OF(fill_reals)(m, value, c->sw);
    if (c->sz) OF(fill_part)('A', 0, n, m, (SCALAR)value, c->sz, c->ldz);
    return;
  }
  SCALAR *p = OF(new_pair_tangents)(c->uplo, n, m, c->sa, c->lda, c->v, ld, c->v + (index_t)c->first * ld, ld);
  for (int j = 0; c->sw && j < m; j++) c->sw[j] = REAL_PART(p[c->first + j + (index_t)j * ld]);
  if (c->sz) {
    OF(divide_by_gaps)(n, m, c->first, c->w, p, ld);
    OF(fill_part)('A', 0, n, m, 0, c->sz, c->ldz);
    OF(product)('N', 'N', n, m, n, 1, c->v, ld, p, ld, c->sz, c->ldz);
    OF(keep_phases)(c->uplo, n, m, c->v + (index_t)c->first * ld, ld, c->sz, c->ldz, 0);
  }
  OF(fill_part)(c->uplo, 0, n, n, (SCALAR)__builtin_nan(""), c->sa, c->lda);
  free(p);
}

static void OF(subset_cotangent)(struct OF(subset) * c) {
  int n = c->n, m = c->m, ld = je_at_least_one(n);
  OF(forget_work)(c->swork, c->srwork);
  if (c->sa) {
    OF(spoil)(c->uplo, n, c->sa, c->lda);
    if (c->failed)
      OF(fill_part)(c->uplo, 0, n, n, (SCALAR)__builtin_nan(""), c->sa, c->lda);
    else
      OF(add_pair_cotangents)(c->uplo, n, m, c->first, c->w, c->v, ld, c->v + (index_t)c->first * ld, ld, c->sz, c->ldz,
                              c->sw, c->sa, c->lda);
  }
  if (c->sw) OF(fill_reals)(m, 0, c->sw);
  if (c->sz) OF(fill_part)('A', 0, n, m, 0, c->sz, c->ldz);
}

/* The rules of a routine: its name, whether it asks for the size of `work`, and its other arguments and parameters. */
#define SUBSET(name, asks, arguments, ...)                                                                             \
  extern void BLAS(name)(SUBSET_PARAMETERS, __VA_ARGS__);                                                              \
  void RULE(name, _jvp)(SUBSET_PARAMETERS, __VA_ARGS__, SUBSET_SHADOWS) {                                              \
    struct OF(subset) c = {*n, *lda, *ldz, 0, 0, 0, je_upper(uplo), 0, 0, sa, sz, 0, sw, 0};                           \
    SCALAR *v = sa && !(asks) ? OF(new_copy)(c.uplo, *n, *n, a, *lda) : 0;                                             \
    REAL *all = v ? OF(new_reals)(*n) : 0;                                                                             \
    BLAS(name)(SUBSET_ARGUMENTS, JE_SPREAD arguments);                                                                 \
    OF(forget_work)(swork, SRWORK);                                                                                    \
    if (asks) return;                                                                                                  \
    if (je_upper(jobz) != 'V') c.sz = 0;                                                                               \
    c.m = *m, c.failed = *info, c.v = v, c.w = all;                                                                    \
    if (v) c.first = OF(subset_solved)(jobz, range, c.uplo, *n, *m, *vl, *il, z, *ldz, v, all, &c.failed);             \
    OF(subset_tangent)(&c);                                                                                            \
    free(v);                                                                                                           \
    free(all);                                                                                                         \
  }                                                                                                                    \
  void *RULE(name, _forward)(SUBSET_PARAMETERS, __VA_ARGS__, SUBSET_SHADOWS, long stable, void *arena) {               \
    struct OF(subset) *c = je_arena_allocate(arena, sizeof *c);                                                        \
    int ld = je_at_least_one(*n);                                                                                      \
    (void)stable;                                                                                                      \
    if (asks) sa = 0, sw = 0, sz = 0;                                                                                  \
    c->n = *n, c->lda = *lda, c->ldz = *ldz, c->uplo = je_upper(uplo), c->first = 0;                                   \
    c->sa = sa, c->sw = sw, c->sz = je_upper(jobz) == 'V' ? sz : 0, c->swork = swork, c->srwork = SRWORK;              \
    SCALAR *v = 0;                                                                                                     \
    REAL *all = 0;                                                                                                     \
    if (sa) {                                                                                                          \
      v = OF(allocate)(arena, (index_t)ld * *n);                                                                       \
      all = je_arena_allocate(arena, (long)ld * (long)sizeof(REAL));                                                   \
      OF(copy_part)(c->uplo, *n, *n, a, *lda, v, ld);                                                                  \
    }                                                                                                                  \
    BLAS(name)(SUBSET_ARGUMENTS, JE_SPREAD arguments);                                                                 \
    c->m = asks ? 0 : *m;                                                                                              \
    int failed = *info;                                                                                                \
    if (v) c->first = OF(subset_solved)(jobz, range, c->uplo, *n, *m, *vl, *il, z, *ldz, v, all, &failed);             \
    c->v = v, c->w = all, c->failed = failed;                                                                          \
    return c;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(subset_cotangent)(frame); }

#ifdef COMPLEX
SUBSET(heevr, *lwork == -1 || *lrwork == -1 || *liwork == -1, (isuppz, work, lwork, rwork, lrwork, iwork, liwork, info),
       int *isuppz, SCALAR *work, const int *lwork, REAL *rwork, const int *lrwork, int *iwork, const int *liwork,
       int *info)
SUBSET(heevx, *lwork == -1, (work, lwork, rwork, iwork, ifail, info), SCALAR *work, const int *lwork, REAL *rwork,
       int *iwork, int *ifail, int *info)
#else
SUBSET(syevr, *lwork == -1 || *liwork == -1, (isuppz, work, lwork, iwork, liwork, info), int *isuppz, SCALAR *work,
       const int *lwork, int *iwork, const int *liwork, int *info)
SUBSET(syevx, *lwork == -1, (work, lwork, iwork, ifail, info), SCALAR *work, const int *lwork, int *iwork, int *ifail,
       int *info)
#endif

#undef SUBSET
