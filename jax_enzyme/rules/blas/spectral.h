/* Eigenvalues of symmetric matrices, and singular values, of real numbers. Where two of these are equal, the vectors
   that belong to them have no derivative: it comes out as infinite or as no number. What a routine leaves of a matrix
   that it destroys has none either. `work` and `info` are as elsewhere. */
#ifndef COMPLEX

extern void BLAS(syev)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                       int *);
extern void BLAS(syevd)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                        int *, const int *, int *);
extern void BLAS(gesvd)(const char *, const char *, const int *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *,
                        const int *, SCALAR *, const int *, SCALAR *, const int *, int *);
extern void BLAS(gesdd)(const char *, const int *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                        SCALAR *, const int *, SCALAR *, const int *, int *, int *);

static const char je_vectors = 'V', je_thin = 'S';

/* z = opx(x) opy(y), new, of size m x n; the inner size is k. */
static SCALAR *OF(new_product)(char opx, char opy, int m, int n, int k, const SCALAR *x, int ldx, const SCALAR *y,
                               int ldy) {
  int ld = je_at_least_one(m);
  SCALAR *z = OF(new)((index_t)ld * n);
  OF(fill_part)('A', 0, m, n, 0, z, ld);
  if (m > 0 && n > 0 && k > 0) OF(product)(opx, opy, m, n, k, 1, x, ldx, y, ldy, z, ld);
  return z;
}

/* Off the diagonal, p(i, j) / (w(j) - w(i)). */
static void OF(divide_by_gaps)(int n, const SCALAR *w, SCALAR *p, int ldp) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      if (i != j) p[i + (index_t)j * ldp] /= w[j] - w[i];
}

static void OF(spoil_all)(int m, int n, SCALAR *a, int lda) {
  OF(fill_part)('A', 0, m, n, (SCALAR)__builtin_nan(""), a, lda);
}

/* A = V diag(w) V^T, with dA = dA^T:     P = V^T dA V, dw = diag(P), dV = V (F o P), F(i, j) = 1 / (w(j) - w(i))
     Abar = X + X^T off the diagonal, X on it, X = V (diag(wbar) + F o V^T Vbar) V^T
   (M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation, 2008.)
   Abar is of the stored triangle: an entry off the diagonal stands for two. */

struct OF(eigen_frame) {
  int n, lda, kept_ldv, vectors;
  char uplo;
  const SCALAR *v, *w;
  SCALAR *sa, *sw, *swork;
};

/* The vectors of a matrix, in its place: of a routine that is asked for none. */
static void OF(eigenvectors)(const char *uplo, int n, SCALAR *a, int lda, int *info) {
  int ask = -1;
  SCALAR size, *w = OF(new)(n);
  BLAS(syev)(&je_vectors, uplo, &n, a, &lda, w, &size, &ask, info);
  int room = (int)size;
  SCALAR *work = OF(new)(room);
  BLAS(syev)(&je_vectors, uplo, &n, a, &lda, w, work, &room, info);
  free(work);
  free(w);
}

/* What comes before the routine: what vectors are to be of, where it gives none. */
static SCALAR *OF(eigen_old)(const char *jobz, const char *uplo, int n, const SCALAR *a, int lda, int wanted) {
  return wanted && je_upper(jobz) != 'V' ? OF(new_copy)(je_upper(uplo), n, n, a, lda) : 0;
}

static void OF(eigen_tangent)(const char *uplo, int n, const SCALAR *a, int lda, SCALAR *old, const SCALAR *w,
                              int failed, SCALAR *sa, SCALAR *sw) {
  int ld = je_at_least_one(n), ldv = old ? ld : lda;
  char part = je_upper(uplo);
  if (sw && !sa) OF(fill)(n, 0, sw, 1);
  if (!sa) return;
  if (old && !failed) OF(eigenvectors)(uplo, n, old, ld, &failed);
  if (failed) {
    OF(fill_part)(old ? part : 'A', 0, n, n, (SCALAR)__builtin_nan(""), sa, lda);
    if (sw) OF(fill)(n, (SCALAR)__builtin_nan(""), sw, 1);
    return;
  }
  const SCALAR *v = old ? old : a;
  SCALAR *da = OF(new_copy)(part, n, n, sa, lda);
  OF(complete)(part, n, da, ld);
  SCALAR *dav = OF(new_product)('N', 'N', n, n, n, da, ld, v, ldv);
  SCALAR *p = OF(new_product)('T', 'N', n, n, n, v, ldv, dav, ld);
  for (int i = 0; sw && i < n; i++) sw[i] = p[i + (index_t)i * ld];
  if (old) {
    OF(fill_part)(part, 0, n, n, (SCALAR)__builtin_nan(""), sa, lda);
  } else {
    for (int i = 0; i < n; i++) p[i + (index_t)i * ld] = 0;
    OF(divide_by_gaps)(n, w, p, ld);
    SCALAR *dv = OF(new_product)('N', 'N', n, n, n, v, ldv, p, ld);
    OF(copy_part)('A', n, n, dv, ld, sa, lda);
    free(dv);
  }
  free(p);
  free(dav);
  free(da);
}

static void *OF(eigen_kept)(const char *jobz, const char *uplo, int n, const SCALAR *a, int lda, SCALAR *old,
                            const SCALAR *w, int failed, SCALAR *sa, SCALAR *sw, SCALAR *swork, long stable,
                            void *arena) {
  struct OF(eigen_frame) *f = je_arena_allocate(arena, sizeof *f);
  int one = 1, ld = je_at_least_one(n);
  f->n = n, f->lda = f->kept_ldv = lda, f->uplo = je_upper(uplo), f->vectors = je_upper(jobz) == 'V';
  f->sa = sa, f->sw = sw, f->swork = swork, f->v = a, f->w = w;
  if (!sa) return f;
  if (old && !failed) OF(eigenvectors)(uplo, n, old, ld, &failed);
  f->w = OF(keep_vector)(arena, je_is_stable(stable, 1), n, w, &one);
  if (old) f->v = old, f->kept_ldv = ld;
  f->v = OF(keep_part)(arena, !old && je_is_stable(stable, 0), 'A', n, n, f->v, &f->kept_ldv);
  if (failed) f->w = 0;
  return f;
}

static void OF(eigen_cotangent)(struct OF(eigen_frame) * f) {
  int n = f->n, ld = je_at_least_one(n);
  char part = f->vectors ? 'A' : f->uplo;
  if (f->swork) *f->swork = 0;
  if (f->sa && f->n > 0) {
    SCALAR *x = OF(new)((index_t)ld * n);
    OF(fill_part)('A', 0, n, n, 0, x, ld);
    if (!f->vectors || !f->w) OF(spoil)(part, n, f->sa, f->lda);
    if (f->w && f->vectors) {
      OF(product)('T', 'N', n, n, n, 1, f->v, f->kept_ldv, f->sa, f->lda, x, ld);
      OF(divide_by_gaps)(n, f->w, x, ld);
    }
    for (int i = 0; i < n; i++) x[i + (index_t)i * ld] = f->sw ? f->sw[i] : 0;
    if (f->w) {
      SCALAR *vx = OF(new_product)('N', 'N', n, n, n, f->v, f->kept_ldv, x, ld);
      OF(fill_part)('A', 0, n, n, 0, x, ld);
      OF(product)('N', 'T', n, n, n, 1, vx, ld, f->v, f->kept_ldv, x, ld);
      free(vx);
    } else if (f->sw) {
      OF(spoil)('A', n, x, ld);
    }
    if (f->vectors && f->w) OF(fill_part)('A', 0, n, n, 0, f->sa, f->lda);
    for (int j = 0; j < n; j++)
      for (int i = je_first_row(f->uplo, 0, j); i < je_last_row(f->uplo, 0, j, n); i++)
        f->sa[i + (index_t)j * f->lda] +=
            i == j ? x[i + (index_t)j * ld] : x[i + (index_t)j * ld] + x[j + (index_t)i * ld];
    free(x);
  }
  if (f->sw) OF(fill)(n, 0, f->sw, 1);
}

/* The rules of a routine: its name, whether it asks for the size of `work`, its arguments, and its parameters. */
#define EIGEN(name, asks, arguments, ...)                                                                              \
  void RULE(name, _jvp)(__VA_ARGS__, SCALAR * sa, SCALAR * sw, SCALAR * swork) {                                       \
    SCALAR *old = OF(eigen_old)(jobz, uplo, *n, a, *lda, sa && !(asks));                                               \
    BLAS(name) arguments;                                                                                              \
    if (swork) *swork = 0;                                                                                             \
    if (!(asks)) OF(eigen_tangent)(uplo, *n, a, *lda, old, w, *info, sa, sw);                                          \
    free(old);                                                                                                         \
  }                                                                                                                    \
  void *RULE(name, _forward)(__VA_ARGS__, SCALAR * sa, SCALAR * sw, SCALAR * swork, long stable, void *arena) {        \
    if (asks) sa = sw = 0;                                                                                             \
    SCALAR *old = OF(eigen_old)(jobz, uplo, *n, a, *lda, sa != 0);                                                     \
    BLAS(name) arguments;                                                                                              \
    void *f = OF(eigen_kept)(jobz, uplo, *n, a, *lda, old, w, *info, sa, sw, swork, stable, arena);                    \
    free(old);                                                                                                         \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(eigen_cotangent)(frame); }

EIGEN(syev, *lwork == -1, (jobz, uplo, n, a, lda, w, work, lwork, info), const char *jobz, const char *uplo,
      const int *n, SCALAR *a, const int *lda, SCALAR *w, SCALAR *work, const int *lwork, int *info)
EIGEN(syevd, *lwork == -1 || *liwork == -1, (jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info),
      const char *jobz, const char *uplo, const int *n, SCALAR *a, const int *lda, SCALAR *w, SCALAR *work,
      const int *lwork, int *iwork, const int *liwork, int *info)

#undef EIGEN

/* A x = w B x and its like, by a Cholesky factor of B, as LAPACK does it. */
void BLAS(sygv)(const int *itype, const char *jobz, const char *uplo, const int *n, SCALAR *a, const int *lda,
                SCALAR *b, const int *ldb, SCALAR *w, SCALAR *work, const int *lwork, int *info) {
  char part = je_upper(uplo), first = part == 'L' ? 'N' : 'T', second = part == 'L' ? 'T' : 'N';
  int ld = je_at_least_one(*n);
  *info = 0;
  if (OF(asks)(lwork, 34 * *n, work)) return;
  BLAS(potrf)(uplo, n, b, ldb, info);
  if (*info != 0) {
    *info += *n;
    return;
  }
  SCALAR *t = OF(new_copy)(part, *n, *n, a, *lda);
  OF(complete)(part, *n, t, ld);
  if (*itype == 1) {
    OF(triangular_solve)('L', part, first, 'N', *n, *n, b, *ldb, t, ld);
    OF(triangular_solve)('R', part, second, 'N', *n, *n, b, *ldb, t, ld);
  } else {
    OF(triangular_product)('L', part, second, 'N', *n, *n, b, *ldb, t, ld);
    OF(triangular_product)('R', part, first, 'N', *n, *n, b, *ldb, t, ld);
  }
  OF(copy_part)(part, *n, *n, t, ld, a, *lda);
  free(t);
  BLAS(syev)(jobz, uplo, n, a, lda, w, work, lwork, info);
  if (je_upper(jobz) != 'V') return;
  if (*itype == 3)
    OF(triangular_product)('L', part, first, 'N', *n, *n, b, *ldb, a, *lda);
  else
    OF(triangular_solve)('L', part, second, 'N', *n, *n, b, *ldb, a, *lda);
}

#endif
