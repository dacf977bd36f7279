/* The solution of op(A) X = B by the drivers that also scale, refine and estimate. What they give is the solution for
   the matrix that they are given, however they come by it, so that with the factors L U of a copy of it dX = op(A)^-1
   (dB - op(dA) X)        Bbar = Y = op(A)^-H Xbar N: Abar = -Y X^H       T: Abar = -conj(X) Y^T       C: Abar = -X Y^H
   (M. B. Giles, Collected matrix derivative results, 2008.) Of a triangle, an entry off the diagonal stands for two.
   Derivatives of what is given besides are no numbers: factors, scales and estimates; the matrix and the right-hand
   side where they are scaled; and the solution, where the matrix is given scaled. */

struct OF(expert) {
  int n, k, lda, ldaf, ldb, ldx, given, scales, scaled, failed;
  char op, part;
  struct OF(factor_frame) lu;
  const SCALAR *x;
  SCALAR *sa, *saf, *sb, *sx, *swork;
  REAL *sr, *sc, *estimates[3], *srwork;
};

static void OF(expert_shadows)(struct OF(expert) * f, SCALAR *sa, SCALAR *saf, REAL *sr, REAL *sc, SCALAR *sb,
                               SCALAR *sx, REAL *srcond, REAL *sferr, REAL *sberr, SCALAR *swork, REAL *srwork) {
  f->sa = sa, f->saf = saf, f->sr = sr, f->sc = sc, f->sb = sb, f->sx = sx, f->swork = swork, f->srwork = srwork;
  f->estimates[0] = srcond, f->estimates[1] = sferr, f->estimates[2] = sberr;
}

static void OF(expert_sizes)(struct OF(expert) * f, char op, char part, int n, int k, int lda, int ldaf, int ldb,
                             int ldx) {
  f->op = op, f->part = part, f->n = n, f->k = k, f->lda = lda, f->ldaf = ldaf, f->ldb = ldb, f->ldx = ldx;
  f->lu.n = n, f->lu.nrhs = k, f->lu.kept_lda = je_at_least_one(n);
}

/* The whole of a matrix of which a part is stored. */
static void OF(copy_whole)(char part, int n, const SCALAR *a, int lda, SCALAR *to) {
  int ld = je_at_least_one(n);
  OF(copy_part)(part, n, n, a, lda, to, ld);
  if (part != 'A') OF(complete)(part, n, to, ld);
}

/* What a call says: whether it was given factors, made scales, scaled the matrix, or failed or was given a scaled one.
 */
static void OF(expert_said)(struct OF(expert) * f, char fact, char was, char is, int info) {
  f->given = fact == 'F';
  f->scales = fact == 'E';
  f->scaled = is != 'N';
  f->failed = (fact == 'F' && was != 'N') || (info > 0 && info <= f->n);
}

static void OF(expert_tangent)(struct OF(expert) * f, const SCALAR *x) {
  int n = f->n, k = f->k, ld = je_at_least_one(n), ignored;
  SCALAR none = (SCALAR)__builtin_nan("");
  if (f->sx && f->failed) {
    OF(fill_part)('A', 0, n, k, none, f->sx, f->ldx);
  } else if (f->sx) {
    OF(fill_part)('A', 0, n, k, 0, f->sx, f->ldx);
    if (f->sb) OF(copy_part)('A', n, k, f->sb, f->ldb, f->sx, f->ldx);
    if (f->sa) {
      SCALAR *da = OF(new)((index_t)ld * n);
      OF(copy_whole)(f->part, n, f->sa, f->lda, da);
      OF(product)(f->op, 'N', n, k, n, -1, da, ld, x, f->ldx, f->sx, f->ldx);
      free(da);
    }
    BLAS(getrs)(&f->op, &n, &k, f->lu.a, &ld, f->lu.ipiv, f->sx, &f->ldx, &ignored);
  }
  if (f->sa && f->scaled) OF(fill_part)(f->part, 0, n, n, none, f->sa, f->lda);
  if (f->sb && f->scaled) OF(fill_part)('A', 0, n, k, none, f->sb, f->ldb);
  if (f->saf && !f->given) OF(fill_part)(f->part, 0, n, n, none, f->saf, f->ldaf);
  if (f->sr && f->scales) OF(fill_reals)(n, (REAL)__builtin_nan(""), f->sr);
  if (f->sc && f->scales) OF(fill_reals)(n, (REAL)__builtin_nan(""), f->sc);
  for (int i = 0; i < 3; i++)
    if (f->estimates[i]) OF(fill_reals)(i ? k : 1, (REAL)__builtin_nan(""), f->estimates[i]);
  OF(forget_work)(f->swork, f->srwork);
}

/* What is of use of numbers that have no derivative is told, and they are of none any more. */
static int OF(take_reals)(int n, REAL *x) {
  int used = 0;
  for (int i = 0; x && i < n; i++) used |= x[i] != 0, x[i] = 0;
  return used;
}

static int OF(take_part)(char part, int m, int n, SCALAR *a, int lda) {
  int used = 0;
  for (int j = 0; a && j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, m); i++)
      used |= a[i + (index_t)j * lda] != 0, a[i + (index_t)j * lda] = 0;
  return used;
}

static void OF(expert_cotangent)(struct OF(expert) * f) {
  int n = f->n, k = f->k, ld = je_at_least_one(n), used = 0;
  if (!f->given) used |= OF(take_part)(f->part, n, n, f->saf, f->ldaf);
  if (f->scaled) used |= OF(take_part)(f->part, n, n, f->sa, f->lda) | OF(take_part)('A', n, k, f->sb, f->ldb);
  if (f->scales) used |= OF(take_reals)(n, f->sr) | OF(take_reals)(n, f->sc);
  for (int i = 0; i < 3; i++) used |= OF(take_reals)(i ? k : 1, f->estimates[i]);
  OF(forget_work)(f->swork, f->srwork);
  if (f->sx && f->failed) used |= OF(take_part)('A', n, k, f->sx, f->ldx);
  if (f->sx && !f->failed) {
    SCALAR *y = OF(new_copy)('A', n, k, f->sx, f->ldx);
    OF(fill_part)('A', 0, n, k, 0, f->sx, f->ldx);
    OF(lu_solve)(OF(adjoint)(f->op), &f->lu, y, ld);
    if (f->sb) OF(add_part)('A', 0, n, k, 1, y, ld, f->sb, f->ldb);
    if (f->sa) {
      int plain = f->op == 'N', turned = f->op == 'T';
      SCALAR *abar = OF(new_product)(turned ? OF(transposed)(OF(adjoint)('N')) : 'N', turned ? 'T' : OF(adjoint)('N'),
                                     n, n, k, plain ? y : f->x, ld, plain ? f->x : y, ld);
      for (int j = 0; j < n; j++)
        for (int i = je_first_row(f->part, 0, j); i < je_last_row(f->part, 0, j, n); i++) {
          SCALAR here = abar[i + (index_t)j * ld], other = CONJ(abar[j + (index_t)i * ld]);
          f->sa[i + (index_t)j * f->lda] -= f->part == 'A' ? here : i == j ? REAL_PART(here) : here + other;
        }
      free(abar);
    }
    free(y);
  }
  if (used && f->sa) OF(fill_part)(f->part, 0, n, n, (SCALAR)__builtin_nan(""), f->sa, f->lda);
  if (used && f->sb) OF(fill_part)('A', 0, n, k, (SCALAR)__builtin_nan(""), f->sb, f->ldb);
}

/* The rules of a routine: its name, how it reads the matrix, whether it is given and says that it scales, its shadows
   of scales, its arguments and parameters. */
#define EXPERT(name, operation, stored, was_scaled, is_scaled, row_scales, column_scales, scale_shadows, arguments,    \
               ...)                                                                                                    \
  extern void BLAS(name)(__VA_ARGS__);                                                                                 \
  void RULE(name, _jvp)(__VA_ARGS__, SCALAR * sa, SCALAR * saf, JE_SPREAD scale_shadows SCALAR * sb, SCALAR * sx,      \
                        REAL * srcond, REAL * sferr, REAL * sberr, SCALAR * swork RWORK) {                             \
    struct OF(expert) f;                                                                                               \
    int ld = je_at_least_one(*n), failed = 0, *pivots = malloc((unsigned long)ld * sizeof(int));                       \
    char was = was_scaled;                                                                                             \
    SCALAR *lu = OF(new)((index_t)ld * *n);                                                                            \
    OF(expert_sizes)(&f, operation, stored, *n, *nrhs, *lda, *ldaf, *ldb, *ldx);                                       \
    OF(expert_shadows)(&f, sa, saf, row_scales, column_scales, sb, sx, srcond, sferr, sberr, swork, SRWORK);           \
    OF(copy_whole)(f.part, *n, a, *lda, lu);                                                                           \
    BLAS(name) arguments;                                                                                              \
    OF(expert_said)(&f, je_upper(fact), was, is_scaled, *info);                                                        \
    BLAS(getrf)(n, n, lu, &ld, pivots, &failed);                                                                       \
    f.lu.a = lu, f.lu.ipiv = pivots;                                                                                   \
    OF(expert_tangent)(&f, x);                                                                                         \
    free(lu);                                                                                                          \
    free(pivots);                                                                                                      \
  }                                                                                                                    \
  void *RULE(name, _forward)(__VA_ARGS__, SCALAR * sa, SCALAR * saf, JE_SPREAD scale_shadows SCALAR * sb, SCALAR * sx, \
                             REAL * srcond, REAL * sferr, REAL * sberr, SCALAR * swork RWORK, long stable,             \
                             void *arena) {                                                                            \
    struct OF(expert) *f = je_arena_allocate(arena, sizeof *f);                                                        \
    int ld = je_at_least_one(*n), kept = *ldx, failed = 0;                                                             \
    int *pivots = je_arena_allocate(arena, (long)ld * (long)sizeof(int));                                              \
    char was = was_scaled;                                                                                             \
    SCALAR *lu = OF(allocate)(arena, (index_t)ld * *n);                                                                \
    (void)stable;                                                                                                      \
    OF(expert_sizes)(f, operation, stored, *n, *nrhs, *lda, *ldaf, *ldb, *ldx);                                        \
    OF(expert_shadows)(f, sa, saf, row_scales, column_scales, sb, sx, srcond, sferr, sberr, swork, SRWORK);            \
    OF(copy_whole)(f->part, *n, a, *lda, lu);                                                                          \
    BLAS(name) arguments;                                                                                              \
    OF(expert_said)(f, je_upper(fact), was, is_scaled, *info);                                                         \
    BLAS(getrf)(n, n, lu, &ld, pivots, &failed);                                                                       \
    f->lu.a = lu, f->lu.ipiv = pivots, f->x = OF(keep_part)(arena, 0, 'A', *n, *nrhs, x, &kept);                       \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(expert_cotangent)(frame); }

#ifdef COMPLEX
#define SPACE REAL *rwork
#define SPACE_ARGUMENT rwork
#else
#define SPACE int *iwork
#define SPACE_ARGUMENT iwork
#endif

EXPERT(gesvx, OF(operation)(trans), 'A', je_upper(fact) == 'F' ? je_upper(equed) : 'N', je_upper(equed), sr, sc,
       (REAL * sr, REAL *sc, ),
       (fact, trans, n, nrhs, a, lda, af, ldaf, ipiv, equed, r, c, b, ldb, x, ldx, rcond, ferr, berr, work,
        SPACE_ARGUMENT, info),
       const char *fact, const char *trans, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *af,
       const int *ldaf, int *ipiv, char *equed, REAL *r, REAL *c, SCALAR *b, const int *ldb, SCALAR *x, const int *ldx,
       REAL *rcond, REAL *ferr, REAL *berr, SCALAR *work, SPACE, int *info)
EXPERT(posvx, 'N', je_upper(uplo), je_upper(fact) == 'F' ? je_upper(equed) : 'N', je_upper(equed), ss, (REAL *)0,
       (REAL * ss, ),
       (fact, uplo, n, nrhs, a, lda, af, ldaf, equed, s, b, ldb, x, ldx, rcond, ferr, berr, work, SPACE_ARGUMENT, info),
       const char *fact, const char *uplo, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *af,
       const int *ldaf, char *equed, REAL *s, SCALAR *b, const int *ldb, SCALAR *x, const int *ldx, REAL *rcond,
       REAL *ferr, REAL *berr, SCALAR *work, SPACE, int *info)

#undef EXPERT
#undef SPACE
#undef SPACE_ARGUMENT
