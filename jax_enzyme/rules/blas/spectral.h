/* Eigenvalues of symmetric and Hermitian matrices, and singular values. Where two of these are equal, the vectors
   that belong to them have no derivative: it comes out as infinite or as no number. What a routine leaves of a matrix
   that it destroys has none either. `work` and `info` are as elsewhere. */

#ifdef COMPLEX
extern void BLAS(heev)(const char *, const char *, const int *, SCALAR *, const int *, REAL *, SCALAR *, const int *,
                       REAL *, int *);
extern void BLAS(heevd)(const char *, const char *, const int *, SCALAR *, const int *, REAL *, SCALAR *, const int *,
                        REAL *, const int *, int *, const int *, int *);
#else
extern void BLAS(syev)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                       int *);
extern void BLAS(syevd)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                        int *, const int *, int *);
#endif

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

/* p(i, j) / (w(first + j) - w(i)) of so many columns, and nothing where that is none of two. */
static void OF(divide_by_gaps)(int n, int columns, int first, const REAL *w, SCALAR *p, int ldp) {
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < n; i++)
      p[i + (index_t)j * ldp] = i == first + j ? 0 : p[i + (index_t)j * ldp] / (w[first + j] - w[i]);
}

static void OF(fill_reals)(int n, REAL value, REAL *x) {
  for (int i = 0; i < n; i++) x[i] = value;
}

static const REAL *OF(keep_reals)(void *arena, int n, const REAL *x) {
  REAL *copy = je_arena_allocate(arena, (long)je_at_least_one(n) * (long)sizeof(REAL));
  for (int i = 0; i < n; i++) copy[i] = x[i];
  return copy;
}

static void OF(spoil_all)(int m, int n, SCALAR *a, int lda) {
  OF(fill_part)('A', 0, m, n, (SCALAR)__builtin_nan(""), a, lda);
}

/* The phase of a complex vector is the routine's choice. LAPACK's reduction to a real tridiagonal matrix leaves the
   first row of vectors real, or the last one of an upper triangle, and so they stay: where z(k) is real, dz -= i z
   Im(dz(k)) / z(k)                  zbar(k) += i Im(zbar^H z) / z(k) Otherwise the phase is that of which z^H dz = 0.
 */
static void OF(keep_phases)(char part, int n, int columns, const SCALAR *z, int ldz, SCALAR *dz, int lddz,
                            int backwards) {
#ifdef COMPLEX
  for (int j = 0; j < columns; j++) {
    const SCALAR *here = z + (index_t)j * ldz;
    SCALAR *change = dz + (index_t)j * lddz, fixed = here[part == 'L' ? 0 : n - 1];
    if (__imag__(fixed) != 0 || __real__(fixed) == 0) continue;
    if (backwards) {
      REAL turned = __imag__(OF(inner)(n, change, 1, here, 1)) / __real__(fixed);
      change[part == 'L' ? 0 : n - 1] += __builtin_complex((REAL)0, turned);
    } else {
      REAL turned = -__imag__(change[part == 'L' ? 0 : n - 1]) / __real__(fixed);
      OF(accumulate)(n, __builtin_complex((REAL)0, turned), here, 1, change, 1);
    }
  }
#else
  (void)part, (void)n, (void)columns, (void)z, (void)ldz, (void)dz, (void)lddz, (void)backwards;
#endif
}

/* A = V diag(w) V^H, with dA = dA^H, of `columns` pairs from the number `first` on, Z and w:
     P = V^H dA Z, dw = diag(P), dZ = V (F o P), F(i, j) = 1 / (w(first + j) - w(i)), and 0 where the two are one
     X = (Z diag(wbar) + V (F o V^H Zbar)) Z^H, Abar = X + X^H off the diagonal, X on it
   (M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation, 2008;
   of all pairs Z is V, but for signs.) Abar is of the stored triangle: an entry off the diagonal stands for two. */

/* The first of these: to be released, dw on the diagonal from `first` on. */
static SCALAR *OF(new_pair_tangents)(char part, int n, int columns, const SCALAR *da, int lda, const SCALAR *v, int ldv,
                                     const SCALAR *z, int ldz) {
  int ld = je_at_least_one(n);
  SCALAR *whole = OF(new_copy)(part, n, n, da, lda);
  OF(complete)(part, n, whole, ld);
  SCALAR *daz = OF(new_product)('N', 'N', n, columns, n, whole, ld, z, ldz);
  SCALAR *p = OF(new_product)(OF(adjoint)('N'), 'N', n, columns, n, v, ldv, daz, ld);
  free(daz);
  free(whole);
  return p;
}

/* abar grows; `zbar` is NULL where vectors have none, and `wbar` where values have none. */
static void OF(add_pair_cotangents)(char part, int n, int columns, int first, const REAL *w, const SCALAR *v, int ldv,
                                    const SCALAR *z, int ldz, const SCALAR *zbar, int ldzbar, const REAL *wbar,
                                    SCALAR *abar, int lda) {
  int ld = je_at_least_one(n);
  SCALAR *y = OF(new)((index_t)ld * columns);
  if (zbar) {
    SCALAR *turned = OF(new_copy)('A', n, columns, zbar, ldzbar);
    OF(keep_phases)(part, n, columns, z, ldz, turned, ld, 1);
    SCALAR *p = OF(new_product)(OF(adjoint)('N'), 'N', n, columns, n, v, ldv, turned, ld);
    free(turned);
    OF(divide_by_gaps)(n, columns, first, w, p, ld);
    OF(fill_part)('A', 0, n, columns, 0, y, ld);
    OF(product)('N', 'N', n, columns, n, 1, v, ldv, p, ld, y, ld);
    free(p);
  } else {
    OF(fill_part)('A', 0, n, columns, 0, y, ld);
  }
  for (int j = 0; wbar && j < columns; j++)
    for (int i = 0; i < n; i++) y[i + (index_t)j * ld] += wbar[j] * z[i + (index_t)j * ldz];
  SCALAR *x = OF(new_product)('N', OF(adjoint)('N'), n, n, columns, y, ld, z, ldz);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, n); i++) {
      SCALAR here = x[i + (index_t)j * ld];
      abar[i + (index_t)j * lda] += i == j ? REAL_PART(here) : here + CONJ(x[j + (index_t)i * ld]);
    }
  free(x);
  free(y);
}

struct OF(eigen_frame) {
  int n, lda, kept_ldv, vectors;
  char uplo;
  const SCALAR *v;
  const REAL *w;
  SCALAR *sa, *swork;
  REAL *sw, *srwork;
};

/* The values of a matrix, and its vectors in its place where the job asks for them. */
static void OF(eigenvectors)(const char *jobz, const char *uplo, int n, SCALAR *a, int lda, REAL *w, int *info) {
  int ask = -1;
  SCALAR size;
#ifdef COMPLEX
  REAL *rwork = OF(new_reals)(3 * n);
  BLAS(heev)(jobz, uplo, &n, a, &lda, w, &size, &ask, rwork, info);
  int room = (int)__real__(size);
  SCALAR *work = OF(new)(room);
  BLAS(heev)(jobz, uplo, &n, a, &lda, w, work, &room, rwork, info);
  free(rwork);
#else
  BLAS(syev)(jobz, uplo, &n, a, &lda, w, &size, &ask, info);
  int room = (int)size;
  SCALAR *work = OF(new)(room);
  BLAS(syev)(jobz, uplo, &n, a, &lda, w, work, &room, info);
#endif
  free(work);
}

/* What comes before the routine: what vectors are to be of, where it gives none. */
static SCALAR *OF(eigen_old)(const char *jobz, const char *uplo, int n, const SCALAR *a, int lda, int wanted) {
  return wanted && je_upper(jobz) != 'V' ? OF(new_copy)(je_upper(uplo), n, n, a, lda) : 0;
}

static void OF(eigen_tangent)(const char *uplo, int n, const SCALAR *a, int lda, SCALAR *old, const REAL *w, int failed,
                              SCALAR *sa, REAL *sw) {
  int ld = je_at_least_one(n), ldv = old ? ld : lda;
  char part = je_upper(uplo);
  if (sw && !sa) OF(fill_reals)(n, 0, sw);
  if (!sa) return;
  if (old && !failed) {
    REAL *again = OF(new_reals)(n);
    OF(eigenvectors)(&je_vectors, uplo, n, old, ld, again, &failed);
    free(again);
  }
  if (failed) {
    OF(fill_part)(old ? part : 'A', 0, n, n, (SCALAR)__builtin_nan(""), sa, lda);
    if (sw) OF(fill_reals)(n, (REAL)__builtin_nan(""), sw);
    return;
  }
  const SCALAR *v = old ? old : a;
  SCALAR *p = OF(new_pair_tangents)(part, n, n, sa, lda, v, ldv, v, ldv);
  for (int i = 0; sw && i < n; i++) sw[i] = REAL_PART(p[i + (index_t)i * ld]);
  if (old) {
    OF(fill_part)(part, 0, n, n, (SCALAR)__builtin_nan(""), sa, lda);
  } else {
    OF(divide_by_gaps)(n, n, 0, w, p, ld);
    SCALAR *dv = OF(new_product)('N', 'N', n, n, n, v, ldv, p, ld);
    OF(keep_phases)(part, n, n, v, ldv, dv, ld, 0);
    OF(copy_part)('A', n, n, dv, ld, sa, lda);
    free(dv);
  }
  free(p);
}

static void *OF(eigen_kept)(const char *jobz, const char *uplo, int n, const SCALAR *a, int lda, SCALAR *old,
                            const REAL *w, int failed, SCALAR *sa, REAL *sw, long stable, void *arena) {
  struct OF(eigen_frame) *f = je_arena_allocate(arena, sizeof *f);
  int ld = je_at_least_one(n);
  f->n = n, f->lda = f->kept_ldv = lda, f->uplo = je_upper(uplo), f->vectors = je_upper(jobz) == 'V';
  f->sa = sa, f->sw = sw, f->v = a, f->w = w;
  if (!sa) return f;
  if (old && !failed) {
    REAL *again = OF(new_reals)(n);
    OF(eigenvectors)(&je_vectors, uplo, n, old, ld, again, &failed);
    free(again);
  }
  if (!je_is_stable(stable, 1)) f->w = OF(keep_reals)(arena, n, w);
  if (old) f->v = old, f->kept_ldv = ld;
  f->v = OF(keep_part)(arena, !old && je_is_stable(stable, 0), 'A', n, n, f->v, &f->kept_ldv);
  if (failed) f->w = 0;
  return f;
}

static void OF(eigen_cotangent)(struct OF(eigen_frame) * f) {
  int n = f->n, ld = je_at_least_one(n);
  OF(forget_work)(f->swork, f->srwork);
  if (f->sa && n > 0) {
    SCALAR *vbar = f->w && f->vectors ? OF(new_copy)('A', n, n, f->sa, f->lda) : 0;
    if (vbar)
      OF(fill_part)('A', 0, n, n, 0, f->sa, f->lda);
    else
      OF(spoil)(f->vectors ? 'A' : f->uplo, n, f->sa, f->lda);
    if (f->w) {
      OF(add_pair_cotangents)(f->uplo, n, n, 0, f->w, f->v, f->kept_ldv, f->v, f->kept_ldv, vbar, ld, f->sw, f->sa,
                              f->lda);
    } else {
      for (int i = 0; f->sw && i < n; i++)
        if (f->sw[i] != 0) OF(fill_part)(f->uplo, 0, n, n, (SCALAR)__builtin_nan(""), f->sa, f->lda);
    }
    free(vbar);
  }
  if (f->sw) OF(fill_reals)(n, 0, f->sw);
}

/* The rules of a routine: its name, whether it asks for the size of `work`, its arguments, and its parameters. */
#define EIGEN(name, asks, arguments, ...)                                                                              \
  void RULE(name, _jvp)(__VA_ARGS__, SCALAR * sa, REAL * sw, SCALAR * swork RWORK) {                                   \
    SCALAR *old = OF(eigen_old)(jobz, uplo, *n, a, *lda, sa && !(asks));                                               \
    BLAS(name) arguments;                                                                                              \
    OF(forget_work)(swork, SRWORK);                                                                                    \
    if (!(asks)) OF(eigen_tangent)(uplo, *n, a, *lda, old, w, *info, sa, sw);                                          \
    free(old);                                                                                                         \
  }                                                                                                                    \
  void *RULE(name, _forward)(__VA_ARGS__, SCALAR * sa, REAL * sw, SCALAR * swork RWORK, long stable, void *arena) {    \
    if (asks) sa = 0, sw = 0;                                                                                          \
    SCALAR *old = OF(eigen_old)(jobz, uplo, *n, a, *lda, sa != 0);                                                     \
    BLAS(name) arguments;                                                                                              \
    struct OF(eigen_frame) *f = OF(eigen_kept)(jobz, uplo, *n, a, *lda, old, w, *info, sa, sw, stable, arena);         \
    f->swork = swork, f->srwork = SRWORK;                                                                              \
    free(old);                                                                                                         \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(eigen_cotangent)(frame); }

#ifdef COMPLEX
EIGEN(heev, *lwork == -1, (jobz, uplo, n, a, lda, w, work, lwork, rwork, info), const char *jobz, const char *uplo,
      const int *n, SCALAR *a, const int *lda, REAL *w, SCALAR *work, const int *lwork, REAL *rwork, int *info)
EIGEN(heevd, *lwork == -1 || *lrwork == -1 || *liwork == -1,
      (jobz, uplo, n, a, lda, w, work, lwork, rwork, lrwork, iwork, liwork, info), const char *jobz, const char *uplo,
      const int *n, SCALAR *a, const int *lda, REAL *w, SCALAR *work, const int *lwork, REAL *rwork, const int *lrwork,
      int *iwork, const int *liwork, int *info)
#else
EIGEN(syev, *lwork == -1, (jobz, uplo, n, a, lda, w, work, lwork, info), const char *jobz, const char *uplo,
      const int *n, SCALAR *a, const int *lda, SCALAR *w, SCALAR *work, const int *lwork, int *info)
EIGEN(syevd, *lwork == -1 || *liwork == -1, (jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info),
      const char *jobz, const char *uplo, const int *n, SCALAR *a, const int *lda, SCALAR *w, SCALAR *work,
      const int *lwork, int *iwork, const int *liwork, int *info)
#endif

#undef EIGEN

#ifndef COMPLEX

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
