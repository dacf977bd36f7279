/* Singular values and their vectors, of real numbers: what `spectral.h` says holds here too. */
#ifndef COMPLEX

/* A = U S V^T with U and V thin (k columns, k = min(m, n)):
     dP = U^T dA V, ds = diag(dP), F(i, j) = 1 / (s(j)^2 - s(i)^2)
     dU = U (F o (dP S + S dP^T)) + (1 - U U^T) dA V / S,   dV = V (F o (S dP + dP^T S)) + (1 - V V^T) dA^T U / S
     Abar = U ((J + J^T) S + diag(sbar) + S (K + K^T)) V^T + (1 - U U^T) (Ubar / S) V^T + U ((1 - V V^T) Vbar / S)^T,
       J = F o (U^T Ubar), K = F o (V^T Vbar)
   (J. Townsend, Differentiating the singular value decomposition, 2016.) Columns of a whole U or V beyond these are any
   basis of what is left, and have no derivative; nor do vectors that are left in A (`O`). */

struct OF(singular_frame) {
  int m, n, lda, ldu, ldvt, left, right, failed;
  const SCALAR *u, *vt, *s;
  SCALAR *sa, *ss, *su, *svt, *swork;
};

/* The arguments that derivatives are about. Where vectors are not asked for, u or vt is NULL. */
struct OF(singular) {
  int m, n, lda, ldu, ldvt;
  char jobu, jobvt;
  SCALAR *s, *u, *vt, *sa, *ss, *su, *svt, *swork;
};

/* What the one job of gesdd asks for. Where the larger factor goes to the place of the matrix (`O`), the other one,
   which is square, has memory of its own. */
static char OF(left_job)(char job, int m, int n) { return job == 'O' && m < n ? 'A' : job; }

static char OF(right_job)(char job, int m, int n) { return job == 'O' && m >= n ? 'A' : job; }

/* How many vectors a job asks for in memory of their own. */
static int OF(asked)(char job, int all, int few) { return job == 'A' ? all : job == 'S' ? few : 0; }

/* x(:, j) /= s(j) for n x k, or x(i, :) /= s(i). */
static void OF(divide_columns)(int n, int k, const SCALAR *s, SCALAR *x, int ldx) {
  for (int j = 0; j < k; j++)
    for (int i = 0; i < n; i++) x[i + (index_t)j * ldx] /= s[j];
}

static void OF(divide_rows)(int k, int n, const SCALAR *s, SCALAR *x, int ldx) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < k; i++) x[i + (index_t)j * ldx] /= s[i];
}

/* x o F: off the diagonal, x(i, j) / (s(j)^2 - s(i)^2); on it, zero. */
static void OF(divide_by_square_gaps)(int k, const SCALAR *s, SCALAR *x, int ldx) {
  for (int j = 0; j < k; j++)
    for (int i = 0; i < k; i++)
      if (i == j)
        x[i + (index_t)j * ldx] = 0;
      else
        x[i + (index_t)j * ldx] /= (s[j] - s[i]) * (s[j] + s[i]);
}

/* The thin factors, of a copy of the matrix, that no call has given: both, or the one by the other. U or V^T is new. */
static void OF(thin_factors)(const struct OF(singular) * c, SCALAR *old, SCALAR **u, SCALAR **vt, int *failed) {
  int m = c->m, n = c->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k), ask = -1;
  int has_u = c->jobu == 'S' || c->jobu == 'A', has_vt = c->jobvt == 'S' || c->jobvt == 'A';
  *u = has_u ? OF(new_copy)('A', m, k, c->u, c->ldu) : 0;
  *vt = has_vt ? OF(new_copy)('A', k, n, c->vt, c->ldvt) : 0;
  if (*u && !*vt) {
    *vt = OF(new_product)('T', 'N', k, n, m, *u, ld, old, ld);
    OF(divide_rows)(k, n, c->s, *vt, ldk);
  } else if (*vt && !*u) {
    *u = OF(new_product)('N', 'T', m, k, n, old, ld, *vt, ldk);
    OF(divide_columns)(m, k, c->s, *u, ld);
  } else if (!*u) {
    SCALAR size, *s = OF(new)(k);
    *u = OF(new)((index_t)ld * k), *vt = OF(new)((index_t)ldk * n);
    BLAS(gesvd)(&je_thin, &je_thin, &m, &n, old, &ld, s, *u, &ld, *vt, &ldk, &size, &ask, failed);
    int room = (int)size;
    SCALAR *work = OF(new)(room);
    BLAS(gesvd)(&je_thin, &je_thin, &m, &n, old, &ld, s, *u, &ld, *vt, &ldk, work, &room, failed);
    free(work);
    free(s);
  }
}

static void OF(singular_tangent)(const struct OF(singular) * c, SCALAR *old, int failed) {
  int m = c->m, n = c->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k),
      ldn = je_at_least_one(n);
  int us = OF(asked)(c->jobu, m, k), vs = OF(asked)(c->jobvt, n, k);
  SCALAR *u = 0, *vt = 0;
  if (c->sa && !failed) OF(thin_factors)(c, old, &u, &vt, &failed);
  if (!c->sa || failed) {
    SCALAR value = c->sa ? (SCALAR)__builtin_nan("") : 0;
    if (c->ss) OF(fill)(k, value, c->ss, 1);
    if (c->su) OF(fill_part)('A', 0, m, us, value, c->su, c->ldu);
    if (c->svt) OF(fill_part)('A', 0, vs, n, value, c->svt, c->ldvt);
  } else {
    SCALAR *da = OF(new_copy)('A', m, n, c->sa, c->lda);
    SCALAR *dav = OF(new_product)('N', 'T', m, k, n, da, ld, vt, ldk),
           *dau = OF(new_product)('T', 'N', n, k, m, da, ld, u, ld);
    SCALAR *p = OF(new_product)('T', 'N', k, k, m, u, ld, dav, ld), *x = OF(new)((index_t)ldk * k);
    for (int i = 0; c->ss && i < k; i++) c->ss[i] = p[i + (index_t)i * ldk];
    if (c->su && us) {
      for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++)
          x[i + (index_t)j * ldk] = p[i + (index_t)j * ldk] * c->s[j] + c->s[i] * p[j + (index_t)i * ldk];
      OF(divide_by_square_gaps)(k, c->s, x, ldk);
      SCALAR *du = OF(new_product)('N', 'N', m, k, k, u, ld, x, ldk);
      if (m > k) {
        OF(product)('N', 'N', m, k, k, -1, u, ld, p, ldk, dav, ld);
        OF(divide_columns)(m, k, c->s, dav, ld);
        OF(add_part)('A', 0, m, k, 1, dav, ld, du, ld);
      }
      OF(spoil_all)(m, us, c->su, c->ldu);
      OF(copy_part)('A', m, k, du, ld, c->su, c->ldu);
      free(du);
    }
    if (c->svt && vs) {
      for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++)
          x[i + (index_t)j * ldk] = c->s[i] * p[i + (index_t)j * ldk] + p[j + (index_t)i * ldk] * c->s[j];
      OF(divide_by_square_gaps)(k, c->s, x, ldk);
      SCALAR *dv = OF(new_product)('T', 'N', n, k, k, vt, ldk, x, ldk);
      if (n > k) {
        OF(product)('T', 'T', n, k, k, -1, vt, ldk, p, ldk, dau, ldn);
        OF(divide_columns)(n, k, c->s, dau, ldn);
        OF(add_part)('A', 0, n, k, 1, dau, ldn, dv, ldn);
      }
      OF(spoil_all)(vs, n, c->svt, c->ldvt);
      for (int j = 0; j < k; j++)
        for (int i = 0; i < n; i++) c->svt[j + (index_t)i * c->ldvt] = dv[i + (index_t)j * ldn];
      free(dv);
    }
    free(x);
    free(p);
    free(dau);
    free(dav);
    free(da);
  }
  if (c->sa) OF(spoil_all)(m, n, c->sa, c->lda);
  free(vt);
  free(u);
}

static void *OF(singular_kept)(const struct OF(singular) * c, SCALAR *old, int failed, void *arena) {
  struct OF(singular_frame) *f = je_arena_allocate(arena, sizeof *f);
  int m = c->m, n = c->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k), one = 1;
  f->m = m, f->n = n, f->lda = c->lda, f->ldu = c->ldu, f->ldvt = c->ldvt;
  f->sa = c->sa, f->ss = c->ss, f->su = c->su, f->svt = c->svt, f->swork = c->swork;
  f->left = OF(asked)(c->jobu, m, k), f->right = OF(asked)(c->jobvt, n, k), f->failed = 1;
  if (!c->sa) return f;
  SCALAR *u = 0, *vt = 0;
  if (!failed) OF(thin_factors)(c, old, &u, &vt, &failed);
  f->failed = failed;
  if (!failed) {
    f->u = OF(keep_part)(arena, 0, 'A', m, k, u, &ld);
    f->vt = OF(keep_part)(arena, 0, 'A', k, n, vt, &ldk);
    f->s = OF(keep_vector)(arena, 0, k, c->s, &one);
  }
  free(vt);
  free(u);
  return f;
}

/* Whether a matrix has an entry that is not zero. */
static int OF(is_used)(int m, int n, const SCALAR *a, int lda) {
  int used = 0;
  for (int j = 0; a && j < n; j++)
    for (int i = 0; i < m; i++) used |= a[i + (index_t)j * lda] != 0;
  return used;
}

/* Adds what the cotangents of the vectors give to the k x k matrix between U and V^T, and to Abar beside it. */
static void OF(add_left)(const struct OF(singular_frame) * f, int k, SCALAR *x, SCALAR *abar) {
  int m = f->m, ld = je_at_least_one(m), ldk = je_at_least_one(k);
  SCALAR *inner = OF(new_product)('T', 'N', k, k, m, f->u, ld, f->su, f->ldu);
  if (m > k) {
    SCALAR *rest = OF(new_copy)('A', m, k, f->su, f->ldu);
    OF(product)('N', 'N', m, k, k, -1, f->u, ld, inner, ldk, rest, ld);
    OF(divide_columns)(m, k, f->s, rest, ld);
    OF(product)('N', 'N', m, f->n, k, 1, rest, ld, f->vt, ldk, abar, ld);
    free(rest);
  }
  OF(divide_by_square_gaps)(k, f->s, inner, ldk);
  for (int j = 0; j < k; j++)
    for (int i = 0; i < k; i++)
      x[i + (index_t)j * ldk] += (inner[i + (index_t)j * ldk] + inner[j + (index_t)i * ldk]) * f->s[j];
  free(inner);
}

static void OF(add_right)(const struct OF(singular_frame) * f, int k, SCALAR *x, SCALAR *abar) {
  int n = f->n, ld = je_at_least_one(f->m), ldk = je_at_least_one(k);
  SCALAR *inner = OF(new_product)('N', 'T', k, k, n, f->vt, ldk, f->svt, f->ldvt);
  if (n > k) {
    SCALAR *rest = OF(new_copy)('A', k, n, f->svt, f->ldvt);
    OF(product)('T', 'N', k, n, k, -1, inner, ldk, f->vt, ldk, rest, ldk);
    OF(divide_rows)(k, n, f->s, rest, ldk);
    OF(product)('N', 'N', f->m, n, k, 1, f->u, ld, rest, ldk, abar, ld);
    free(rest);
  }
  OF(divide_by_square_gaps)(k, f->s, inner, ldk);
  for (int j = 0; j < k; j++)
    for (int i = 0; i < k; i++)
      x[i + (index_t)j * ldk] += f->s[i] * (inner[i + (index_t)j * ldk] + inner[j + (index_t)i * ldk]);
  free(inner);
}

static void OF(singular_cotangent)(struct OF(singular_frame) * f) {
  int m = f->m, n = f->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k);
  int known = f->failed ? 0 : k, left = f->left - known, right = f->right - known;
  if (f->swork) *f->swork = 0;
  if (f->sa) {
    SCALAR *abar = OF(new)((index_t)ld * n), *x = OF(new)((index_t)ldk * k);
    OF(fill_part)('A', 0, m, n, 0, abar, ld);
    OF(fill_part)('A', 0, k, k, 0, x, ldk);
    if (!f->failed) {
      for (int i = 0; f->ss && i < k; i++) x[i + (index_t)i * ldk] = f->ss[i];
      if (f->su && f->left) OF(add_left)(f, k, x, abar);
      if (f->svt && f->right) OF(add_right)(f, k, x, abar);
      SCALAR *ux = OF(new_product)('N', 'N', m, k, k, f->u, ld, x, ldk);
      if (k > 0) OF(product)('N', 'N', m, n, k, 1, ux, ld, f->vt, ldk, abar, ld);
      free(ux);
    }
    int lost = f->failed && OF(is_used)(k, 1, f->ss, k);
    lost |= f->su && OF(is_used)(m, left, f->su + known * (index_t)f->ldu, f->ldu);
    lost |= f->svt && OF(is_used)(right, n, f->svt + known, f->ldvt);
    if (lost || OF(is_used)(m, n, f->sa, f->lda))
      OF(spoil_all)(m, n, f->sa, f->lda);
    else
      OF(copy_part)('A', m, n, abar, ld, f->sa, f->lda);
    free(x);
    free(abar);
  }
  if (f->ss) OF(fill)(k, 0, f->ss, 1);
  if (f->su) OF(fill_part)('A', 0, m, f->left, 0, f->su, f->ldu);
  if (f->svt) OF(fill_part)('A', 0, f->right, n, 0, f->svt, f->ldvt);
}

/* The matrix before the call, where a derivative needs it. A call that asks for the size of `work` has none. */
static SCALAR *OF(singular_old)(struct OF(singular) * c, int lwork, const SCALAR *a) {
  if (lwork == -1) c->sa = c->ss = c->su = c->svt = 0;
  return c->sa ? OF(new_copy)('A', c->m, c->n, a, c->lda) : 0;
}

/* The rules of a routine: its name, its jobs for both sides, its arguments, and its parameters. */
#define SINGULAR(name, left, right, arguments, ...)                                                                    \
  void RULE(name, _jvp)(__VA_ARGS__, SCALAR * sa, SCALAR * ss, SCALAR * su, SCALAR * svt, SCALAR * swork) {            \
    struct OF(singular) c = {*m, *n, *lda, *ldu, *ldvt, left, right, s, u, vt, sa, ss, su, svt, swork};                \
    SCALAR *old = OF(singular_old)(&c, *lwork, a);                                                                     \
    BLAS(name) arguments;                                                                                              \
    if (swork) *swork = 0;                                                                                             \
    if (*lwork != -1) OF(singular_tangent)(&c, old, *info);                                                            \
    free(old);                                                                                                         \
  }                                                                                                                    \
  void *RULE(name, _forward)(__VA_ARGS__, SCALAR * sa, SCALAR * ss, SCALAR * su, SCALAR * svt, SCALAR * swork,         \
                             long stable, void *arena) {                                                               \
    struct OF(singular) c = {*m, *n, *lda, *ldu, *ldvt, left, right, s, u, vt, sa, ss, su, svt, swork};                \
    SCALAR *old = OF(singular_old)(&c, *lwork, a);                                                                     \
    (void)stable;                                                                                                      \
    BLAS(name) arguments;                                                                                              \
    void *f = OF(singular_kept)(&c, old, *info, arena);                                                                \
    free(old);                                                                                                         \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(singular_cotangent)(frame); }

SINGULAR(gesvd, je_upper(jobu), je_upper(jobvt), (jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info),
         const char *jobu, const char *jobvt, const int *m, const int *n, SCALAR *a, const int *lda, SCALAR *s,
         SCALAR *u, const int *ldu, SCALAR *vt, const int *ldvt, SCALAR *work, const int *lwork, int *info)
SINGULAR(gesdd, OF(left_job)(je_upper(jobz), *m, *n), OF(right_job)(je_upper(jobz), *m, *n),
         (jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info), const char *jobz, const int *m,
         const int *n, SCALAR *a, const int *lda, SCALAR *s, SCALAR *u, const int *ldu, SCALAR *vt, const int *ldvt,
         SCALAR *work, const int *lwork, int *iwork, int *info)

#undef SINGULAR

/* The smallest of the least squares solutions, by singular values above `rcond` times the largest. Below a solution of
   full rank lies what the sum of squares of the residual is: of one number here. */
static void OF(smallest_solution)(int m, int n, int nrhs, SCALAR *a, int lda, SCALAR *b, int ldb, SCALAR *s,
                                  SCALAR rcond, int *rank, int *info) {
  int k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k), room = 5 * (m + n) + 1;
  SCALAR least = rcond < 0 ? (sizeof(SCALAR) == 4 ? (SCALAR)0x1p-24 : (SCALAR)0x1p-53) : rcond;
  SCALAR *u = OF(new)((index_t)ld * k), *vt = OF(new)((index_t)ldk * n), *work = OF(new)(room);
  *rank = 0;
  BLAS(gesvd)(&je_thin, &je_thin, &m, &n, a, &lda, s, u, &ld, vt, &ldk, work, &room, info);
  if (*info == 0) {
    for (int i = 0; i < k; i++) *rank += s[i] > least * s[0];
    SCALAR *inner = OF(new_product)('T', 'N', k, nrhs, m, u, ld, b, ldb);
    if (m > n && *rank == n) {
      OF(product)('N', 'N', m, nrhs, k, -1, u, ld, inner, ldk, b, ldb);
      for (int j = 0; j < nrhs; j++) {
        SCALAR *column = b + (index_t)j * ldb, size = BLAS(nrm2)(&m, column, &je_one_int);
        for (int i = n; i < m; i++) column[i] = 0;
        column[n] = size;
      }
    }
    OF(divide_rows)(*rank, nrhs, s, inner, ldk);
    OF(fill_part)('A', 0, n, nrhs, 0, b, ldb);
    if (*rank > 0) OF(product)('T', 'N', n, nrhs, *rank, 1, vt, ldk, inner, ldk, b, ldb);
    free(inner);
  }
  free(work);
  free(vt);
  free(u);
}

void BLAS(gelss)(const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 SCALAR *s, const SCALAR *rcond, int *rank, SCALAR *work, const int *lwork, int *info) {
  *info = 0;
  if (OF(asks)(lwork, 5 * (*m + *n) + *nrhs, work)) return;
  OF(smallest_solution)(*m, *n, *nrhs, a, *lda, b, *ldb, s, *rcond, rank, info);
}

void BLAS(gelsd)(const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 SCALAR *s, const SCALAR *rcond, int *rank, SCALAR *work, const int *lwork, int *iwork, int *info) {
  *info = 0;
  if (OF(asks)(lwork, 5 * (*m + *n) + *nrhs, work)) {
    *iwork = 1;
    return;
  }
  OF(smallest_solution)(*m, *n, *nrhs, a, *lda, b, *ldb, s, *rcond, rank, info);
}

#endif
