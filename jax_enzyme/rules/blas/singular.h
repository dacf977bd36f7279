/* Singular values and their vectors: what `spectral.h` says holds here too. */

extern void BLAS(gesdd)(const char *, const int *, const int *, SCALAR *, const int *, REAL *, SCALAR *, const int *,
                        SCALAR *, const int *, SCALAR *, const int *ROOM_TYPE, int *, int *);

/* A = U S V^H with U and V thin (k columns, k = min(m, n)):
     dP = U^H dA V, ds = Re diag(dP), F(i, j) = 1 / (s(j)^2 - s(i)^2)
     dU = U (F o (dP S + S dP^H)) + (1 - U U^H) dA V / S,   dV = V (F o (S dP + dP^H S)) + (1 - V V^H) dA^H U / S
     Abar = U ((J + J^H) S + diag(sbar) + S (K + K^H)) V^H + (1 - U U^H) (Ubar / S) V^H + U ((1 - V V^H) Vbar / S)^H,
       J = F o (U^H Ubar), K = F o (V^H Vbar)
   (J. Townsend, Differentiating the singular value decomposition, 2016.) Columns of a whole U or V beyond these are any
   basis of what is left, and have no derivative; nor do vectors that are left in A (`O`).

   Complex vectors u(j) and v(j) turn by one phase, which is LAPACK's choice: its reduction to a real bidiagonal matrix
   leaves the first component of v real, or that of u where the matrix is wider than high; where it is none, v^H dv = 0.
   With x the one and y the other, and e = 1 where x is v and -1 where it is u:
     dy += i e Im(dP(j, j)) / s y, then dx -= i h x and dy -= i h y with h = Im(dx(0)) / x(0)
     xbar(0) += i Im(xbar^H x + ybar^H y) / x(0), Pbar(j, j) -= i e Im(ybar^H y) / s */

struct OF(singular_frame) {
  int m, n, lda, ldu, ldvt, left, right, failed;
  const SCALAR *u, *vt;
  const REAL *s;
  SCALAR *sa, *su, *svt, *swork;
  REAL *ss, *srwork;
};

/* The arguments that derivatives are about. Where vectors are not asked for, u or vt is NULL. */
struct OF(singular) {
  int m, n, lda, ldu, ldvt;
  char jobu, jobvt;
  REAL *s;
  SCALAR *u, *vt, *sa;
  REAL *ss;
  SCALAR *su, *svt, *swork;
  REAL *srwork;
};

/* What the one job of gesdd asks for. Where the larger factor goes to the place of the matrix (`O`), the other one,
   which is square, has memory of its own. */
static char OF(left_job)(char job, int m, int n) { return job == 'O' && m < n ? 'A' : job; }

static char OF(right_job)(char job, int m, int n) { return job == 'O' && m >= n ? 'A' : job; }

/* How many vectors a job asks for in memory of their own. */
static int OF(asked)(char job, int all, int few) { return job == 'A' ? all : job == 'S' ? few : 0; }

/* x(:, j) /= s(j) for n x k, or x(i, :) /= s(i). */
static void OF(divide_columns)(int n, int k, const REAL *s, SCALAR *x, int ldx) {
  for (int j = 0; j < k; j++)
    for (int i = 0; i < n; i++) x[i + (index_t)j * ldx] /= s[j];
}

static void OF(divide_rows)(int k, int n, const REAL *s, SCALAR *x, int ldx) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < k; i++) x[i + (index_t)j * ldx] /= s[i];
}

/* x o F: off the diagonal, x(i, j) / (s(j)^2 - s(i)^2); on it, zero. */
static void OF(divide_by_square_gaps)(int k, const REAL *s, SCALAR *x, int ldx) {
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
    *vt = OF(new_product)(OF(adjoint)('N'), 'N', k, n, m, *u, ld, old, ld);
    OF(divide_rows)(k, n, c->s, *vt, ldk);
  } else if (*vt && !*u) {
    *u = OF(new_product)('N', OF(adjoint)('N'), m, k, n, old, ld, *vt, ldk);
    OF(divide_columns)(m, k, c->s, *u, ld);
  } else if (!*u) {
    SCALAR size;
    REAL *s = OF(new_reals)(k), *rwork = OF(new_reals)(5 * k);
    *u = OF(new)((index_t)ld * k), *vt = OF(new)((index_t)ldk * n);
    BLAS(gesvd)(&je_thin, &je_thin, &m, &n, old, &ld, s, *u, &ld, *vt, &ldk, &size, &ask ROOM_ARGUMENT, failed);
    int room = (int)REAL_PART(size);
    SCALAR *work = OF(new)(room);
    BLAS(gesvd)(&je_thin, &je_thin, &m, &n, old, &ld, s, *u, &ld, *vt, &ldk, work, &room ROOM_ARGUMENT, failed);
    free(work);
    free(rwork);
    free(s);
  }
}

/* Whether the first component of a vector is real, as far as that is told from rounding, and none. */
static int OF(fixes_phase)(SCALAR x) {
  REAL bound = sizeof(REAL) == 4 ? (REAL)0x1p-17 : (REAL)0x1p-46;
  return OF(magnitude)(REAL_PART(x)) > bound && OF(magnitude)(x - REAL_PART(x)) < bound;
}

#ifdef COMPLEX

/* Turns the tangents of vectors so that the phases are LAPACK's. There are k vectors x of n numbers, and y of m. */
static void OF(turn_tangents)(int e, int m, int n, int k, const REAL *s, const SCALAR *p, const SCALAR *x,
                              const SCALAR *y, SCALAR *dx, SCALAR *dy) {
  for (index_t j = 0; j < k; j++, x += n, dx += n, y += m, dy += m) {
    OF(accumulate)(m, __builtin_complex((REAL)0, e * __imag__(p[j + j * k]) / s[j]), y, 1, dy, 1);
    if (!OF(fixes_phase)(x[0])) continue;
    SCALAR turned = __builtin_complex((REAL)0, -__imag__(dx[0]) / __real__(x[0]));
    OF(accumulate)(n, turned, x, 1, dx, 1);
    OF(accumulate)(m, turned, y, 1, dy, 1);
  }
}

/* The same backwards, from cotangents of vectors to those before: into them, and into the diagonal of Pbar. */
static void OF(turn_cotangents)(int e, int m, int n, int k, const REAL *s, const SCALAR *x, const SCALAR *y,
                                SCALAR *xbar, SCALAR *ybar, SCALAR *pbar) {
  for (index_t j = 0; j < k; j++, x += n, xbar += n, y += m, ybar += m) {
    REAL one = __imag__(OF(inner)(n, xbar, 1, x, 1)), both = __imag__(OF(inner)(m, ybar, 1, y, 1));
    pbar[j + j * k] -= __builtin_complex((REAL)0, e * both / s[j]);
    if (OF(fixes_phase)(x[0])) xbar[0] += __builtin_complex((REAL)0, (one + both) / __real__(x[0]));
  }
}

#endif

/* dU = U (F o q) + (1 - U U^H) dA V / S, of q and dA V, which is spent: or dV with its like. */
static SCALAR *OF(new_side_tangent)(int size, int k, const REAL *s, const SCALAR *u, SCALAR *q, const SCALAR *p,
                                    char op, SCALAR *across) {
  int ld = je_at_least_one(size), ldk = je_at_least_one(k);
  OF(divide_by_square_gaps)(k, s, q, ldk);
  SCALAR *du = OF(new_product)('N', 'N', size, k, k, u, ld, q, ldk);
  if (size > k) {
    OF(product)('N', op, size, k, k, -1, u, ld, p, ldk, across, ld);
    OF(divide_columns)(size, k, s, across, ld);
    OF(add_part)('A', 0, size, k, 1, across, ld, du, ld);
  }
  return du;
}

static void OF(singular_tangent)(const struct OF(singular) * c, SCALAR *old, int failed) {
  int m = c->m, n = c->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k),
      us = OF(asked)(c->jobu, m, k), vs = OF(asked)(c->jobvt, n, k);
  char turned = OF(adjoint)('N');
  SCALAR *u = 0, *vt = 0, none = (SCALAR)__builtin_nan("");
  if (c->sa && !failed) OF(thin_factors)(c, old, &u, &vt, &failed);
  if (!c->sa || failed) {
    SCALAR value = c->sa ? none : 0;
    if (c->ss) OF(fill_reals)(k, REAL_PART(value), c->ss);
    if (c->su) OF(fill_part)('A', 0, m, us, value, c->su, c->ldu);
    if (c->svt) OF(fill_part)('A', 0, vs, n, value, c->svt, c->ldvt);
  } else {
    SCALAR *dav = OF(new_product)('N', turned, m, k, n, c->sa, c->lda, vt, ldk),
           *p = OF(new_product)(turned, 'N', k, k, m, u, ld, dav, ld);
    for (int i = 0; c->ss && i < k; i++) c->ss[i] = REAL_PART(p[i + (index_t)i * ldk]);
    if ((c->su && us) || (c->svt && vs)) {
      SCALAR *dau = OF(new_product)(turned, 'N', n, k, m, c->sa, c->lda, u, ld), *v = OF(new_turned)(k, n, vt, ldk);
      SCALAR *left = OF(new)((index_t)ldk * k), *right = OF(new)((index_t)ldk * k);
      for (index_t j = 0; j < k; j++)
        for (index_t i = 0; i < k; i++) {
          SCALAR here = p[i + j * ldk], there = CONJ(p[j + i * ldk]);
          left[i + j * ldk] = here * c->s[j] + c->s[i] * there, right[i + j * ldk] = c->s[i] * here + there * c->s[j];
        }
      SCALAR *du = OF(new_side_tangent)(m, k, c->s, u, left, p, 'N', dav),
             *dv = OF(new_side_tangent)(n, k, c->s, v, right, p, turned, dau);
#ifdef COMPLEX
      if (m >= n)
        OF(turn_tangents)(1, m, n, k, c->s, p, v, u, dv, du);
      else
        OF(turn_tangents)(-1, n, m, k, c->s, p, u, v, du, dv);
#endif
      if (c->su && us) {
        OF(spoil_all)(m, us, c->su, c->ldu);
        OF(copy_part)('A', m, k, du, ld, c->su, c->ldu);
      }
      if (c->svt && vs) {
        OF(spoil_all)(vs, n, c->svt, c->ldvt);
        OF(turn_back)(k, n, dv, c->svt, c->ldvt);
      }
      free(dv);
      free(du);
      free(right);
      free(left);
      free(v);
      free(dau);
    }
    free(p);
    free(dav);
  }
  if (c->sa) OF(spoil_all)(m, n, c->sa, c->lda);
  free(vt);
  free(u);
}

static void *OF(singular_kept)(const struct OF(singular) * c, SCALAR *old, int failed, void *arena) {
  struct OF(singular_frame) *f = je_arena_allocate(arena, sizeof *f);
  int m = c->m, n = c->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k);
  f->m = m, f->n = n, f->lda = c->lda, f->ldu = c->ldu, f->ldvt = c->ldvt;
  f->sa = c->sa, f->ss = c->ss, f->su = c->su, f->svt = c->svt, f->swork = c->swork, f->srwork = c->srwork;
  f->left = OF(asked)(c->jobu, m, k), f->right = OF(asked)(c->jobvt, n, k), f->failed = 1;
  if (!c->sa) return f;
  SCALAR *u = 0, *vt = 0;
  if (!failed) OF(thin_factors)(c, old, &u, &vt, &failed);
  f->failed = failed;
  if (!failed) {
    f->u = OF(keep_part)(arena, 0, 'A', m, k, u, &ld);
    f->vt = OF(keep_part)(arena, 0, 'A', k, n, vt, &ldk);
    f->s = OF(keep_reals)(arena, k, c->s);
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

/* Adds to Pbar and to Abar what the cotangents of U give, which are spent, or those of V: `of_left` tells which, and
   `other` is the other one. */
static void OF(add_side)(const struct OF(singular_frame) * f, int of_left, int k, const SCALAR *u, const SCALAR *other,
                         SCALAR *ubar, SCALAR *x, SCALAR *abar) {
  int size = of_left ? f->m : f->n, across = of_left ? f->n : f->m, ld = je_at_least_one(size),
      ldk = je_at_least_one(k), ldo = je_at_least_one(across), lda = je_at_least_one(f->m);
  char turned = OF(adjoint)('N');
  SCALAR *inner = OF(new_product)(turned, 'N', k, k, size, u, ld, ubar, ld);
  if (size > k) {
    OF(product)('N', 'N', size, k, k, -1, u, ld, inner, ldk, ubar, ld);
    OF(divide_columns)(size, k, f->s, ubar, ld);
    if (of_left)
      OF(product)('N', turned, f->m, f->n, k, 1, ubar, ld, other, ldo, abar, lda);
    else
      OF(product)('N', turned, f->m, f->n, k, 1, other, ldo, ubar, ld, abar, lda);
  }
  OF(divide_by_square_gaps)(k, f->s, inner, ldk);
  for (index_t j = 0; j < k; j++)
    for (index_t i = 0; i < k; i++)
      x[i + j * ldk] += (inner[i + j * ldk] + CONJ(inner[j + i * ldk])) * f->s[of_left ? j : i];
  free(inner);
}

static void OF(singular_cotangent)(struct OF(singular_frame) * f) {
  int m = f->m, n = f->n, k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k),
      ldn = je_at_least_one(n);
  int known = f->failed ? 0 : k, left = f->left - known, right = f->right - known;
  OF(forget_work)(f->swork, f->srwork);
  if (f->sa) {
    SCALAR *abar = OF(new)((index_t)ld * n), *x = OF(new)((index_t)ldk * k);
    OF(fill_part)('A', 0, m, n, 0, abar, ld);
    OF(fill_part)('A', 0, k, k, 0, x, ldk);
    if (!f->failed) {
      int of_left = f->su && f->left, of_right = f->svt && f->right;
      for (int i = 0; f->ss && i < k; i++) x[i + (index_t)i * ldk] = f->ss[i];
      if (of_left || of_right) {
        SCALAR *v = OF(new_turned)(k, n, f->vt, ldk),
               *ubar = of_left ? OF(new_copy)('A', m, k, f->su, f->ldu) : OF(new)((index_t)ld * k),
               *vbar = of_right ? OF(new_turned)(k, n, f->svt, f->ldvt) : OF(new)((index_t)ldn * k);
        if (!of_left) OF(fill_part)('A', 0, m, k, 0, ubar, ld);
        if (!of_right) OF(fill_part)('A', 0, n, k, 0, vbar, ldn);
#ifdef COMPLEX
        if (m >= n)
          OF(turn_cotangents)(1, m, n, k, f->s, v, f->u, vbar, ubar, x);
        else
          OF(turn_cotangents)(-1, n, m, k, f->s, f->u, v, ubar, vbar, x);
#endif
        OF(add_side)(f, 1, k, f->u, v, ubar, x, abar);
        OF(add_side)(f, 0, k, v, f->u, vbar, x, abar);
        free(vbar);
        free(ubar);
        free(v);
      }
      SCALAR *ux = OF(new_product)('N', 'N', m, k, k, f->u, ld, x, ldk);
      if (k > 0) OF(product)('N', 'N', m, n, k, 1, ux, ld, f->vt, ldk, abar, ld);
      free(ux);
    }
    int lost = 0;
    for (int i = 0; f->failed && f->ss && i < k; i++) lost |= f->ss[i] != 0;
    lost |= f->su && OF(is_used)(m, left, f->su + known * (index_t)f->ldu, f->ldu);
    lost |= f->svt && OF(is_used)(right, n, f->svt + known, f->ldvt);
    if (lost || OF(is_used)(m, n, f->sa, f->lda))
      OF(spoil_all)(m, n, f->sa, f->lda);
    else
      OF(copy_part)('A', m, n, abar, ld, f->sa, f->lda);
    free(x);
    free(abar);
  }
  if (f->ss) OF(fill_reals)(k, 0, f->ss);
  if (f->su) OF(fill_part)('A', 0, m, f->left, 0, f->su, f->ldu);
  if (f->svt) OF(fill_part)('A', 0, f->right, n, 0, f->svt, f->ldvt);
}

/* The matrix before the call, where a derivative needs it. A call that asks for the size of `work` has none. */
static SCALAR *OF(singular_old)(struct OF(singular) * c, int lwork, const SCALAR *a) {
  if (lwork == -1) c->sa = c->su = c->svt = 0, c->ss = 0;
  return c->sa ? OF(new_copy)('A', c->m, c->n, a, c->lda) : 0;
}

/* The rules of a routine: its name, its jobs for both sides, its arguments, and its parameters. */
#define SINGULAR(name, left, right, arguments, ...)                                                                    \
  void RULE(name, _jvp)(__VA_ARGS__, SCALAR * sa, REAL * ss, SCALAR * su, SCALAR * svt, SCALAR * swork RWORK) {        \
    struct OF(singular) c = {*m, *n, *lda, *ldu, *ldvt, left, right, s, u, vt, sa, ss, su, svt, swork, SRWORK};        \
    SCALAR *old = OF(singular_old)(&c, *lwork, a);                                                                     \
    BLAS(name) arguments;                                                                                              \
    OF(forget_work)(swork, SRWORK);                                                                                    \
    if (*lwork != -1) OF(singular_tangent)(&c, old, *info);                                                            \
    free(old);                                                                                                         \
  }                                                                                                                    \
  void *RULE(name, _forward)(__VA_ARGS__, SCALAR * sa, REAL * ss, SCALAR * su, SCALAR * svt, SCALAR * swork RWORK,     \
                             long stable, void *arena) {                                                               \
    struct OF(singular) c = {*m, *n, *lda, *ldu, *ldvt, left, right, s, u, vt, sa, ss, su, svt, swork, SRWORK};        \
    SCALAR *old = OF(singular_old)(&c, *lwork, a);                                                                     \
    (void)stable;                                                                                                      \
    BLAS(name) arguments;                                                                                              \
    void *f = OF(singular_kept)(&c, old, *info, arena);                                                                \
    free(old);                                                                                                         \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { OF(singular_cotangent)(frame); }

SINGULAR(gesvd, je_upper(jobu), je_upper(jobvt),
         (jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork ROOM_ARGUMENT, info), const char *jobu,
         const char *jobvt, const int *m, const int *n, SCALAR *a, const int *lda, REAL *s, SCALAR *u, const int *ldu,
         SCALAR *vt, const int *ldvt, SCALAR *work, const int *lwork ROOM, int *info)
SINGULAR(gesdd, OF(left_job)(je_upper(jobz), *m, *n), OF(right_job)(je_upper(jobz), *m, *n),
         (jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork ROOM_ARGUMENT, iwork, info), const char *jobz,
         const int *m, const int *n, SCALAR *a, const int *lda, REAL *s, SCALAR *u, const int *ldu, SCALAR *vt,
         const int *ldvt, SCALAR *work, const int *lwork ROOM, int *iwork, int *info)

#undef SINGULAR

/* The smallest of the least squares solutions, by singular values above `rcond` times the largest. Below a solution of
   full rank lies what the sum of squares of the residual is: of one number here. */
static void OF(smallest_solution)(int m, int n, int nrhs, SCALAR *a, int lda, SCALAR *b, int ldb, REAL *s, REAL rcond,
                                  int *rank, int *info) {
  int k = m < n ? m : n, ld = je_at_least_one(m), ldk = je_at_least_one(k), room = 5 * (m + n) + 1;
  REAL least = rcond < 0 ? (sizeof(REAL) == 4 ? (REAL)0x1p-24 : (REAL)0x1p-53) : rcond;
  *rank = 0;
  if (k == 0) return;
  REAL *rwork = OF(new_reals)(5 * k);
  SCALAR *u = OF(new)((index_t)ld * k), *vt = OF(new)((index_t)ldk * n), *work = OF(new)(room);
  BLAS(gesvd)(&je_thin, &je_thin, &m, &n, a, &lda, s, u, &ld, vt, &ldk, work, &room ROOM_ARGUMENT, info);
  if (*info == 0) {
    for (int i = 0; i < k; i++) *rank += s[i] > least * s[0];
    SCALAR *inner = OF(new_product)(OF(adjoint)('N'), 'N', k, nrhs, m, u, ld, b, ldb);
    if (m > n && *rank == n) {
      OF(product)('N', 'N', m, nrhs, k, -1, u, ld, inner, ldk, b, ldb);
      for (int j = 0; j < nrhs; j++) {
        SCALAR *column = b + (index_t)j * ldb, size = NORM2(&m, column, &je_one_int);
        for (int i = n; i < m; i++) column[i] = 0;
        column[n] = size;
      }
    }
    OF(divide_rows)(*rank, nrhs, s, inner, ldk);
    OF(fill_part)('A', 0, n, nrhs, 0, b, ldb);
    if (*rank > 0) OF(product)(OF(adjoint)('N'), 'N', n, nrhs, *rank, 1, vt, ldk, inner, ldk, b, ldb);
    free(inner);
  }
  free(rwork);
  free(work);
  free(vt);
  free(u);
}

void BLAS(gelss)(const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 REAL *s, const REAL *rcond, int *rank, SCALAR *work, const int *lwork ROOM, int *info) {
  *info = 0;
  if (OF(asks)(lwork, 5 * (*m + *n) + *nrhs, work)) return;
  OF(smallest_solution)(*m, *n, *nrhs, a, *lda, b, *ldb, s, *rcond, rank, info);
}

void BLAS(gelsd)(const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 REAL *s, const REAL *rcond, int *rank, SCALAR *work, const int *lwork ROOM, int *iwork, int *info) {
  *info = 0;
  if (OF(asks)(lwork, 5 * (*m + *n) + *nrhs, work)) {
    *iwork = 1;
#ifdef COMPLEX
    *rwork = 1;
#endif
    return;
  }
  OF(smallest_solution)(*m, *n, *nrhs, a, *lda, b, *ldb, s, *rcond, rank, info);
}
