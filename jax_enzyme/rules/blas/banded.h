/* Factorisations and solvers of banded matrices, in LAPACK's storage: a column of the matrix is a column of the array,
   and a diagonal a row of it.

   Eliminations are differentiated step by step. A step needs the pivot, the multipliers and the row of U that it left
   and nothing that was there in between: tangents run through the same elimination, cotangents through it backwards,
   both within the band. */

extern void BLAS(gbtrf)(const int *, const int *, const int *, const int *, SCALAR *, const int *, int *, int *);
extern void BLAS(gbtrs)(const char *, const int *, const int *, const int *, const int *, const SCALAR *, const int *,
                        const int *, SCALAR *, const int *, int *);
extern void BLAS(pbtrf)(const char *, const int *, const int *, SCALAR *, const int *, int *);
extern void BLAS(pbtrs)(const char *, const int *, const int *, const int *, const SCALAR *, const int *, SCALAR *,
                        const int *, int *);

#define WITH(op, x) ((op) == 'C' || (op) == 'R' ? CONJ(x) : (x))

struct OF(band_frame) {
  int m, n, kl, ku, nrhs, lda, kept_lda, ldb, kept_ldb, failed;
  const SCALAR *a, *b;
  const int *ipiv;
  SCALAR *sa, *sb;
  char uplo, op;
};

/* A general band: entry (i, j) with `above` rows of the array above the diagonal. In columns of L U these are kl + ku:
   exchanges fill in kl diagonals. */

static inline index_t OF(at)(int above, int lda, int i, int j) { return above + i - j + (index_t)j * lda; }

static inline int OF(least)(int x, int y) { return x < y ? x : y; }

static inline int OF(first_in_band)(int above, int j) { return j > above ? j - above : 0; }

static void OF(swap_rows)(int columns, SCALAR *b, int ldb, int i, int j) {
  for (int r = 0; i != j && r < columns; r++) {
    SCALAR kept = b[i + (index_t)r * ldb];
    b[i + (index_t)r * ldb] = b[j + (index_t)r * ldb];
    b[j + (index_t)r * ldb] = kept;
  }
}

static void OF(swap_in_band)(int above, SCALAR *a, int lda, int i, int j, int first, int last) {
  for (int k = first; i != j && k < last; k++) {
    SCALAR kept = a[OF(at)(above, lda, i, k)];
    a[OF(at)(above, lda, i, k)] = a[OF(at)(above, lda, j, k)];
    a[OF(at)(above, lda, j, k)] = kept;
  }
}

/* What lies in the diagonals that exchanges fill in is not read. */
static void OF(clear_filled)(int m, int n, int kl, int ku, SCALAR *a, int lda) {
  for (int j = ku + 1; j < n; j++)
    for (int i = OF(first_in_band)(kl + ku, j); i < OF(least)(j - ku, m); i++) a[OF(at)(kl + ku, lda, i, j)] = 0;
}

/* L U of a band, step j, after the exchange: l = a / d, and A2 -= l u for the rows and columns that it reaches.
     dl = (da - l dd) / d               dA2 -= dl u + l du
     lbar -= A2bar u^H, ubar -= l^H A2bar          abar = lbar / conj(d), dbar -= l^H abar */

void RULE(gbtrf, _jvp)(const int *m, const int *n, const int *kl, const int *ku, SCALAR *a, const int *lda, int *ipiv,
                       int *info, SCALAR *sa) {
  BLAS(gbtrf)(m, n, kl, ku, a, lda, ipiv, info);
  if (!sa) return;
  int above = *kl + *ku;
  OF(clear_filled)(*m, *n, *kl, *ku, sa, *lda);
  for (int j = 0; j < OF(least)(*m, *n); j++) {
    int below = OF(least)(j + *kl + 1, *m), beside = OF(least)(j + above + 1, *n);
    index_t diagonal = OF(at)(above, *lda, j, j), lower = diagonal - j;
    OF(swap_in_band)(above, sa, *lda, j, ipiv[j] - 1, j, beside);
    for (int i = j + 1; i < below; i++) sa[lower + i] = (sa[lower + i] - a[lower + i] * sa[diagonal]) / a[diagonal];
    for (int k = j + 1; k < beside; k++) {
      index_t column = OF(at)(above, *lda, 0, k);
      for (int i = j + 1; i < below; i++)
        sa[column + i] -= sa[lower + i] * a[column + j] + a[lower + i] * sa[column + j];
    }
  }
}

void *RULE(gbtrf, _forward)(const int *m, const int *n, const int *kl, const int *ku, SCALAR *a, const int *lda,
                            int *ipiv, int *info, SCALAR *sa, long stable, void *arena) {
  struct OF(band_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->m = *m, f->n = *n, f->kl = *kl, f->ku = *ku, f->lda = f->kept_lda = *lda, f->sa = sa, f->a = a;
  BLAS(gbtrf)(m, n, kl, ku, a, lda, ipiv, info);
  if (sa) {
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', 2 * *kl + *ku + 1, *n, a, &f->kept_lda);
    f->ipiv = OF(keep_pivots)(arena, OF(least)(*m, *n), ipiv);
  }
  return f;
}

void RULE(gbtrf, _reverse)(void *frame) {
  struct OF(band_frame) *f = frame;
  if (!f->sa) return;
  const SCALAR *a = f->a;
  SCALAR *s = f->sa;
  int above = f->kl + f->ku;
  for (int j = OF(least)(f->m, f->n) - 1; j >= 0; j--) {
    int below = OF(least)(j + f->kl + 1, f->m), beside = OF(least)(j + above + 1, f->n);
    index_t diagonal = OF(at)(above, f->lda, j, j), lower = diagonal - j;
    index_t kept_diagonal = OF(at)(above, f->kept_lda, j, j), kept_lower = kept_diagonal - j;
    for (int k = j + 1; k < beside; k++) {
      index_t column = OF(at)(above, f->lda, 0, k), kept_column = OF(at)(above, f->kept_lda, 0, k);
      for (int i = j + 1; i < below; i++) {
        s[lower + i] -= s[column + i] * CONJ(a[kept_column + j]);
        s[column + j] -= CONJ(a[kept_lower + i]) * s[column + i];
      }
    }
    SCALAR pivot = CONJ(a[kept_diagonal]);
    for (int i = j + 1; i < below; i++) {
      if (pivot != 0)
        s[lower + i] /= pivot;
      else if (s[lower + i] != 0)
        s[lower + i] = (SCALAR)__builtin_nan("");
      s[diagonal] -= CONJ(a[kept_lower + i]) * s[lower + i];
    }
    OF(swap_in_band)(above, s, f->lda, j, f->ipiv[j] - 1, j, beside);
  }
  OF(clear_filled)(f->m, f->n, f->kl, f->ku, s, f->lda);
}

/* b = op(U)^-1 b for the upper triangle of such a band. */
static void OF(band_solve)(char op, int n, int above, int nrhs, const SCALAR *a, int lda, SCALAR *b, int ldb) {
  int turned = je_is_transposed(op);
  for (int r = 0; r < nrhs; r++) {
    SCALAR *x = b + (index_t)r * ldb;
    for (int step = 0; step < n; step++) {
      int j = turned ? step : n - 1 - step;
      index_t column = OF(at)(above, lda, 0, j);
      if (!turned) x[j] /= WITH(op, a[column + j]);
      for (int i = OF(first_in_band)(above, j); i < j; i++) {
        if (turned)
          x[j] -= WITH(op, a[column + i]) * x[i];
        else
          x[i] -= WITH(op, a[column + i]) * x[j];
      }
      if (turned) x[j] /= WITH(op, a[column + j]);
    }
  }
}

/* y += alpha op(U) x, for a whole upper triangle of such a band. */
static void OF(add_band_product)(char op, int n, int above, int nrhs, SCALAR alpha, const SCALAR *a, int lda,
                                 const SCALAR *x, int ldx, SCALAR *y, int ldy) {
  int turned = je_is_transposed(op);
  for (int r = 0; r < nrhs; r++)
    for (int j = 0; j < n; j++)
      for (int i = OF(first_in_band)(above, j); i <= j; i++) {
        int to = turned ? j : i, from = turned ? i : j;
        y[to + (index_t)r * ldy] += alpha * WITH(op, a[OF(at)(above, lda, i, j)]) * x[from + (index_t)r * ldx];
      }
}

/* Step j of the elimination of right-hand sides, on the values y and the tangents s.
     N: y2 -= l y1          T, C: y1 -= op(l) y2 */
static void OF(band_tangent_step)(char op, int j, int below, int nrhs, const SCALAR *l, const SCALAR *dl, SCALAR *y,
                                  int ldy, SCALAR *s, int lds) {
  for (int r = 0; r < nrhs; r++) {
    SCALAR *u = y + (index_t)r * ldy, *v = s + (index_t)r * lds;
    for (int i = j + 1; i < below; i++) {
      int to = op == 'N' ? i : j, from = op == 'N' ? j : i;
      v[to] -= WITH(op, l[i]) * v[from] + WITH(op, dl[i]) * u[from];
      u[to] -= WITH(op, l[i]) * u[from];
    }
  }
}

void RULE(gbtrs, _jvp)(const char *trans, const int *n, const int *kl, const int *ku, const int *nrhs, const SCALAR *a,
                       const int *lda, const int *ipiv, SCALAR *b, const int *ldb, int *info, const SCALAR *sa,
                       SCALAR *sb) {
  int k = *nrhs, ld = je_at_least_one(*n), above = *kl + *ku, steps = *kl > 0 ? *n - 1 : 0, ignored;
  char op = OF(operation)(trans);
  SCALAR *y = sa && sb ? OF(new_copy)('A', *n, k, b, *ldb) : 0;
  BLAS(gbtrs)(trans, n, kl, ku, nrhs, a, lda, ipiv, b, ldb, info);
  if (!sb) return;
  if (!sa) {
    BLAS(gbtrs)(trans, n, kl, ku, nrhs, a, lda, ipiv, sb, ldb, &ignored);
    return;
  }
  if (op != 'N') {
    OF(band_solve)(op, *n, above, k, a, *lda, y, ld);
    OF(add_band_product)(op, *n, above, k, -1, sa, *lda, y, ld, sb, *ldb);
    OF(band_solve)(op, *n, above, k, a, *lda, sb, *ldb);
  }
  for (int step = 0; step < steps; step++) {
    int j = op == 'N' ? step : steps - 1 - step, other = ipiv[j] - 1;
    index_t lower = OF(at)(above, *lda, 0, j);
    if (op == 'N') {
      OF(swap_rows)(k, y, ld, j, other);
      OF(swap_rows)(k, sb, *ldb, j, other);
    }
    OF(band_tangent_step)(op, j, OF(least)(j + *kl + 1, *n), k, a + lower, sa + lower, y, ld, sb, *ldb);
    if (op != 'N') {
      OF(swap_rows)(k, y, ld, j, other);
      OF(swap_rows)(k, sb, *ldb, j, other);
    }
  }
  if (op == 'N') {
    OF(add_band_product)('N', *n, above, k, -1, sa, *lda, b, *ldb, sb, *ldb);
    OF(band_solve)('N', *n, above, k, a, *lda, sb, *ldb);
  }
  free(y);
}

void *RULE(gbtrs, _forward)(const char *trans, const int *n, const int *kl, const int *ku, const int *nrhs,
                            const SCALAR *a, const int *lda, const int *ipiv, SCALAR *b, const int *ldb, int *info,
                            SCALAR *sa, SCALAR *sb, long stable, void *arena) {
  struct OF(band_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->op = OF(operation)(trans), f->n = *n, f->kl = *kl, f->ku = *ku, f->nrhs = *nrhs;
  f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb, f->sa = sa, f->sb = sb, f->a = a, f->b = b;
  if (sb) {
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', 2 * *kl + *ku + 1, *n, a, &f->kept_lda);
    f->ipiv = OF(keep_pivots)(arena, *kl > 0 ? *n : 0, ipiv);
  }
  BLAS(gbtrs)(trans, n, kl, ku, nrhs, a, lda, ipiv, b, ldb, info);
  if (sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

/* The cotangent of U in op(U) x = y: N: -ybar x^H,  T: -conj(x) ybar^T,  C: -x ybar^H. */
static void OF(add_band_cotangent)(struct OF(band_frame) * f, const SCALAR *x, int ldx) {
  int above = f->kl + f->ku;
  for (int r = 0; r < f->nrhs; r++)
    for (int j = 0; j < f->n; j++)
      for (int i = OF(first_in_band)(above, j); i <= j; i++) {
        const SCALAR *u = x + (index_t)r * ldx, *v = f->sb + (index_t)r * f->ldb;
        SCALAR term = f->op == 'N' ? v[i] * CONJ(u[j]) : f->op == 'T' ? CONJ(u[i]) * v[j] : u[i] * CONJ(v[j]);
        f->sa[OF(at)(above, f->lda, i, j)] -= term;
      }
}

/* Step j of the elimination backwards; y has the values that it read. `y` is NULL where the factors have no shadow. */
static void OF(band_cotangent_step)(struct OF(band_frame) * f, int j, SCALAR *y, int ldy) {
  int above = f->kl + f->ku;
  const SCALAR *l = f->a + OF(at)(above, f->kept_lda, 0, j);
  SCALAR *lbar = y ? f->sa + OF(at)(above, f->lda, 0, j) : 0;
  for (int r = 0; r < f->nrhs; r++) {
    SCALAR *u = y ? y + (index_t)r * ldy : 0, *v = f->sb + (index_t)r * f->ldb;
    for (int i = j + 1; i < OF(least)(j + f->kl + 1, f->n); i++) {
      if (f->op == 'N') {
        if (y) lbar[i] -= v[i] * CONJ(u[j]);
        v[j] -= CONJ(l[i]) * v[i];
      } else {
        if (y) lbar[i] -= f->op == 'T' ? CONJ(u[i]) * v[j] : u[i] * CONJ(v[j]);
        if (y) u[j] += WITH(f->op, l[i]) * u[i];
        v[i] -= (f->op == 'T' ? CONJ(l[i]) : l[i]) * v[j];
      }
    }
  }
}

void RULE(gbtrs, _reverse)(void *frame) {
  struct OF(band_frame) *f = frame;
  if (!f->sb) return;
  int n = f->n, k = f->nrhs, ld = je_at_least_one(n), above = f->kl + f->ku, steps = f->kl > 0 ? n - 1 : 0;
  char back = OF(adjoint)(f->op);
  SCALAR *y = f->sa ? OF(new_copy)('A', n, k, f->b, f->kept_ldb) : 0;
  if (f->op == 'N') {
    OF(band_solve)(back, n, above, k, f->a, f->kept_lda, f->sb, f->ldb);
    if (y) {
      OF(add_band_cotangent)(f, f->b, f->kept_ldb);
      OF(fill_part)('A', 0, n, k, 0, y, ld);
      OF(add_band_product)('N', n, above, k, 1, f->a, f->kept_lda, f->b, f->kept_ldb, y, ld);
    }
  }
  for (int step = 0; step < steps; step++) {
    int j = f->op == 'N' ? steps - 1 - step : step, other = f->ipiv[j] - 1;
    if (f->op == 'N') {
      OF(band_cotangent_step)(f, j, y, ld);
      OF(swap_rows)(k, f->sb, f->ldb, j, other);
    } else {
      OF(swap_rows)(k, f->sb, f->ldb, j, other);
      if (y) OF(swap_rows)(k, y, ld, j, other);
      OF(band_cotangent_step)(f, j, y, ld);
    }
  }
  if (f->op != 'N') {
    OF(band_solve)(back, n, above, k, f->a, f->kept_lda, f->sb, f->ldb);
    if (y) OF(add_band_cotangent)(f, y, ld);
  }
  free(y);
}

/* Cholesky of a band. The lower triangle by columns and the upper one by rows hold, up to conjugation of all, the same
   numbers: both are looked at as the lower triangle of a matrix S = L L^H, which for 'U' is the conjugate of A. */

static inline index_t OF(below)(char uplo, int kd, int lda, int i, int j) {
  return uplo == 'L' ? i - j + (index_t)j * lda : kd + j - i + (index_t)i * lda;
}

#ifdef COMPLEX
#define REAL_PART(x) __real__(x)
#else
#define REAL_PART(x) (x)
#endif

/* Step j: d = sqrt(a), l = a2 / d, A2 -= l l^H.
     dd = da / 2 d, dl = (da2 - l dd) / d            dA2 -= dl l^H + l dl^H
     lbar -= (A2bar + A2bar^H) l of the full matrix          a2bar = lbar / d, abar = (dbar - l^H a2bar) / 2 d */

void RULE(pbtrf, _jvp)(const char *uplo, const int *n, const int *kd, SCALAR *a, const int *lda, int *info,
                       SCALAR *sa) {
  char part = je_upper(uplo);
  BLAS(pbtrf)(uplo, n, kd, a, lda, info);
  if (!sa) return;
  for (int j = 0; j < *n; j++) {
    int last = OF(least)(j + *kd + 1, *n);
    index_t diagonal = OF(below)(part, *kd, *lda, j, j);
    if (*info != 0) {
      for (int i = j; i < last; i++) sa[OF(below)(part, *kd, *lda, i, j)] = (SCALAR)__builtin_nan("");
      continue;
    }
    sa[diagonal] = REAL_PART(sa[diagonal]) / (2 * a[diagonal]);
    for (int i = j + 1; i < last; i++) {
      index_t at = OF(below)(part, *kd, *lda, i, j);
      sa[at] = (sa[at] - a[at] * sa[diagonal]) / a[diagonal];
    }
    for (int k = j + 1; k < last; k++)
      for (int i = k; i < last; i++) {
        index_t x = OF(below)(part, *kd, *lda, i, j), y = OF(below)(part, *kd, *lda, k, j);
        sa[OF(below)(part, *kd, *lda, i, k)] -= sa[x] * CONJ(a[y]) + a[x] * CONJ(sa[y]);
      }
  }
}

void *RULE(pbtrf, _forward)(const char *uplo, const int *n, const int *kd, SCALAR *a, const int *lda, int *info,
                            SCALAR *sa, long stable, void *arena) {
  struct OF(band_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->n = *n, f->kl = *kd, f->lda = f->kept_lda = *lda, f->sa = sa, f->a = a;
  BLAS(pbtrf)(uplo, n, kd, a, lda, info);
  f->failed = *info != 0;
  if (sa) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', *kd + 1, *n, a, &f->kept_lda);
  return f;
}

void RULE(pbtrf, _reverse)(void *frame) {
  struct OF(band_frame) *f = frame;
  if (!f->sa) return;
  for (int j = f->n - 1; j >= 0; j--) {
    int last = OF(least)(j + f->kl + 1, f->n);
    if (f->failed) {
      for (int i = j; i < last; i++) {
        index_t at = OF(below)(f->uplo, f->kl, f->lda, i, j);
        if (f->sa[at] != 0) f->sa[at] = (SCALAR)__builtin_nan("");
      }
      continue;
    }
    index_t diagonal = OF(below)(f->uplo, f->kl, f->lda, j, j);
    for (int k = j + 1; k < last; k++)
      for (int i = k; i < last; i++) {
        SCALAR bar = f->sa[OF(below)(f->uplo, f->kl, f->lda, i, k)];
        index_t x = OF(below)(f->uplo, f->kl, f->lda, i, j), y = OF(below)(f->uplo, f->kl, f->lda, k, j);
        SCALAR left = f->a[OF(below)(f->uplo, f->kl, f->kept_lda, i, j)];
        f->sa[x] -= (i == k ? 2 * REAL_PART(bar) : bar) * f->a[OF(below)(f->uplo, f->kl, f->kept_lda, k, j)];
        if (i != k) f->sa[y] -= CONJ(bar) * left;
      }
    REAL d = REAL_PART(f->a[OF(below)(f->uplo, f->kl, f->kept_lda, j, j)]), sum = REAL_PART(f->sa[diagonal]);
    for (int i = j + 1; i < last; i++) {
      index_t at = OF(below)(f->uplo, f->kl, f->lda, i, j);
      f->sa[at] /= d;
      sum -= REAL_PART(CONJ(f->a[OF(below)(f->uplo, f->kl, f->kept_lda, i, j)]) * f->sa[at]);
    }
    f->sa[diagonal] = sum / (2 * d);
  }
}

/* y += alpha L x or alpha L^H x ('C'). */
static void OF(add_lower_product)(char op, char uplo, int n, int kd, int nrhs, SCALAR alpha, const SCALAR *a, int lda,
                                  const SCALAR *x, int ldx, SCALAR *y, int ldy) {
  for (int r = 0; r < nrhs; r++)
    for (int j = 0; j < n; j++)
      for (int i = j; i < OF(least)(j + kd + 1, n); i++) {
        int to = op == 'C' ? j : i, from = op == 'C' ? i : j;
        y[to + (index_t)r * ldy] += alpha * WITH(op, a[OF(below)(uplo, kd, lda, i, j)]) * x[from + (index_t)r * ldx];
      }
}

static SCALAR *OF(new_lower_product)(char uplo, int n, int kd, int nrhs, const SCALAR *a, int lda, const SCALAR *x,
                                     int ldx) {
  int ld = je_at_least_one(n);
  SCALAR *y = OF(new)((index_t)ld * nrhs);
  OF(fill_part)('A', 0, n, nrhs, 0, y, ld);
  OF(add_lower_product)('C', uplo, n, kd, nrhs, 1, a, lda, x, ldx, y, ld);
  return y;
}

static SCALAR *OF(new_for_lower)(char uplo, int n, int nrhs, const SCALAR *x, int ldx) {
  SCALAR *copy = OF(new_copy)('A', n, nrhs, x, ldx);
  if (uplo == 'U') OF(conjugate_part)(n, nrhs, copy, je_at_least_one(n));
  return copy;
}

/* B = A^-1 B as for potrs. */

void RULE(pbtrs, _jvp)(const char *uplo, const int *n, const int *kd, const int *nrhs, const SCALAR *a, const int *lda,
                       SCALAR *b, const int *ldb, int *info, const SCALAR *sa, SCALAR *sb) {
  char part = je_upper(uplo);
  int ld = je_at_least_one(*n), k = *nrhs, ignored;
  BLAS(pbtrs)(uplo, n, kd, nrhs, a, lda, b, ldb, info);
  if (!sb) return;
  if (sa) {
    SCALAR *x = OF(new_for_lower)(part, *n, k, b, *ldb);
    SCALAR *t = OF(new_lower_product)(part, *n, *kd, k, a, *lda, x, ld);
    SCALAR *u = OF(new_lower_product)(part, *n, *kd, k, sa, *lda, x, ld);
    OF(fill_part)('A', 0, *n, k, 0, x, ld);
    OF(add_lower_product)('N', part, *n, *kd, k, 1, sa, *lda, t, ld, x, ld);
    OF(add_lower_product)('N', part, *n, *kd, k, 1, a, *lda, u, ld, x, ld);
    if (part == 'U') OF(conjugate_part)(*n, k, x, ld);
    OF(add_part)('A', 0, *n, k, -1, x, ld, sb, *ldb);
    free(x);
    free(t);
    free(u);
  }
  BLAS(pbtrs)(uplo, n, kd, nrhs, a, lda, sb, ldb, &ignored);
}

void *RULE(pbtrs, _forward)(const char *uplo, const int *n, const int *kd, const int *nrhs, const SCALAR *a,
                            const int *lda, SCALAR *b, const int *ldb, int *info, SCALAR *sa, SCALAR *sb, long stable,
                            void *arena) {
  struct OF(band_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->n = *n, f->kl = *kd, f->nrhs = *nrhs, f->lda = f->kept_lda = *lda;
  f->ldb = f->kept_ldb = *ldb, f->sa = sa, f->sb = sb, f->a = a, f->b = b;
  if (sb) f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', *kd + 1, *n, a, &f->kept_lda);
  BLAS(pbtrs)(uplo, n, kd, nrhs, a, lda, b, ldb, info);
  if (sb && sa) f->b = OF(keep_part)(arena, je_is_stable(stable, 1), 'A', *n, *nrhs, b, &f->kept_ldb);
  return f;
}

void RULE(pbtrs, _reverse)(void *frame) {
  struct OF(band_frame) *f = frame;
  if (!f->sb) return;
  int n = f->n, k = f->nrhs, ld = je_at_least_one(n), ignored;
  BLAS(pbtrs)(&f->uplo, &n, &f->kl, &k, f->a, &f->kept_lda, f->sb, &f->ldb, &ignored);
  if (!f->sa) return;
  SCALAR *x = OF(new_for_lower)(f->uplo, n, k, f->b, f->kept_ldb);
  SCALAR *w = OF(new_for_lower)(f->uplo, n, k, f->sb, f->ldb);
  SCALAR *t = OF(new_lower_product)(f->uplo, n, f->kl, k, f->a, f->kept_lda, x, ld);
  SCALAR *u = OF(new_lower_product)(f->uplo, n, f->kl, k, f->a, f->kept_lda, w, ld);
  for (index_t r = 0; r < k; r++)
    for (int j = 0; j < n; j++)
      for (int i = j; i < OF(least)(j + f->kl + 1, n); i++)
        f->sa[OF(below)(f->uplo, f->kl, f->lda, i, j)] -=
            w[i + r * ld] * CONJ(t[j + r * ld]) + x[i + r * ld] * CONJ(u[j + r * ld]);
  free(x);
  free(w);
  free(t);
  free(u);
}
