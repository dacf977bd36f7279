/* Q R and what uses it. Q is a product of reflections H = 1 - tau v v^H, where v is one at its place and lies below the
   diagonal of R, which is real. Derivatives go through the reflections one by one. A reflection can be taken back, by
   1 - s v v^H with s = tau / (tau v^H v - 1), so that cotangents need the result only. */

/* Names of routines about Q: dormqr, zunmqr. */
#ifdef COMPLEX
#define ABOUT_Q(name) JOIN(un, name)
#else
#define ABOUT_Q(name) JOIN(or, name)
#endif

extern void BLAS(geqrf)(const int *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *, int *);
extern void BLAS(ABOUT_Q(mqr))(const char *, const char *, const int *, const int *, const int *, const SCALAR *,
                               const int *, const SCALAR *, SCALAR *, const int *, SCALAR *, const int *, int *);

struct OF(reflections) {
  int m, n, k, lda, kept_lda, ldc, kept_ldc, left, turned;
  const SCALAR *a, *tau, *c;
  SCALAR *sa, *stau, *sc, *swork;
};

/* v^H c, where v[0] is one and is not stored. */
static SCALAR OF(beside_one)(int n, const SCALAR *v, const SCALAR *c, index_t inc) {
  SCALAR sum = *c;
  for (int i = 1; i < n; i++) sum += CONJ(v[i]) * c[i * inc];
  return sum;
}

static void OF(subtract_column)(int n, SCALAR factor, const SCALAR *v, SCALAR *c, index_t inc) {
  *c -= factor;
  for (int i = 1; i < n; i++) c[i * inc] -= factor * v[i];
}

static SCALAR OF(back)(int n, const SCALAR *v, SCALAR tau) {
  SCALAR size = 1;
  for (int i = 1; i < n; i++) size += CONJ(v[i]) * v[i];
  return tau / (tau * size - 1);
}

/* c = H c for `count` vectors of n numbers `inc` apart, which start `next` apart, and their tangents:
     s = v^H c, ds = v^H dc + dv^H c            dc -= dtau s v + tau ds v + tau s dv */
static void OF(reflect)(int n, int count, const SCALAR *v, SCALAR tau, const SCALAR *dv, SCALAR dtau, SCALAR *c,
                        SCALAR *dc, index_t inc, index_t next, index_t dinc, index_t dnext) {
  for (int j = 0; j < count; j++) {
    SCALAR *x = c + j * next, s = OF(beside_one)(n, v, x, inc);
    if (dc) {
      SCALAR *dx = dc + j * dnext, ds = OF(beside_one)(n, v, dx, dinc);
      for (int i = 1; dv && i < n; i++) ds += CONJ(dv[i]) * x[i * inc];
      OF(subtract_column)(n, dtau * s + tau * ds, v, dx, dinc);
      for (int i = 1; dv && i < n; i++) dx[i * dinc] -= tau * s * dv[i];
    }
    OF(subtract_column)(n, tau * s, v, x, inc);
  }
}

/* The same backwards: c becomes what it was, unless it is NULL because v and tau have no shadows.
     r = v^H cbar:  taubar -= conj(s) r, vbar -= conj(tau s) cbar + tau conj(r) c, cbar -= conj(tau) r v */
static void OF(reflect_back)(int n, int count, const SCALAR *v, SCALAR tau, SCALAR *vbar, SCALAR *taubar, SCALAR *c,
                             SCALAR *cbar, index_t inc, index_t next, index_t binc, index_t bnext) {
  SCALAR factor = c ? OF(back)(n, v, tau) : 0;
  for (int j = 0; j < count; j++) {
    SCALAR *xbar = cbar + j * bnext, r = OF(beside_one)(n, v, xbar, binc);
    if (c) {
      SCALAR *x = c + j * next;
      OF(subtract_column)(n, factor * OF(beside_one)(n, v, x, inc), v, x, inc);
      SCALAR s = OF(beside_one)(n, v, x, inc);
      if (taubar) *taubar -= CONJ(s) * r;
      for (int i = 1; vbar && i < n; i++) vbar[i] -= CONJ(tau * s) * xbar[i * binc] + tau * CONJ(r) * x[i * inc];
    }
    OF(subtract_column)(n, CONJ(tau) * r, v, xbar, binc);
  }
}

/* The reflection of column k, for alpha above x: beta = -+|(alpha, x)|, tau = 1 - alpha / beta, v = x / (alpha - beta).
   Other columns are reflected by H^H.
     dbeta = Re(conj(alpha) dalpha + x^H dx) / beta, dtau = (alpha dbeta / beta - dalpha) / beta,
     dv = (dx - v (dalpha - dbeta)) / (alpha - beta)
   Where x is zero and alpha real, LAPACK takes H = 1, though close by it reflects: R changes its sign there and has no
   derivative. Of the last column of a square complex matrix, beta is taken to keep the sign that it has. */

static inline int OF(is_smooth)(SCALAR tau, int rows) {
#ifdef COMPLEX
  return tau != 0 || rows == 1;
#else
  (void)rows;
  return tau != 0;
#endif
}

/* What A is before goes from `old`, and its tangent from sa, into what the result's are, column by column. */
static void OF(triangle_tangent)(int m, int n, const SCALAR *a, int lda, const SCALAR *tau, SCALAR *old, SCALAR *sa,
                                 SCALAR *stau) {
  int steps = m < n ? m : n, ld = je_at_least_one(m);
  for (int k = 0; stau && !sa && k < steps; k++) stau[k] = 0;
  for (int k = 0; sa && k < steps; k++) {
    int rows = m - k;
    const SCALAR *v = a + k + (index_t)k * lda;
    SCALAR *dv = sa + k + (index_t)k * lda, t = tau[k], beta = *v, alpha = beta * (1 - t), dalpha = *dv, dtau = 0;
    if (OF(is_smooth)(t, rows)) {
      SCALAR sum = CONJ(alpha) * dalpha, distance = -t * beta;
      for (int i = 1; i < rows; i++) sum += CONJ(distance * v[i]) * dv[i];
      SCALAR dbeta = REAL_PART(sum / beta);
      dtau = (alpha * dbeta / beta - dalpha) / beta;
      for (int i = 1; i < rows; i++) dv[i] = (dv[i] - v[i] * (dalpha - dbeta)) / distance;
      *dv = dbeta;
    } else if (rows > 1) {
      dtau = (SCALAR)__builtin_nan("");
      for (int i = 0; i < rows; i++) dv[i] = dtau;
    }
    if (stau) stau[k] = dtau;
    OF(reflect)(rows, n - k - 1, v, CONJ(t), dv, CONJ(dtau), old + k + (k + 1) * (index_t)ld, dv + lda, 1, ld, 1, lda);
  }
}

static void OF(triangle_kept)(struct OF(reflections) * f, int m, int n, int asks, const SCALAR *a, int lda,
                              const SCALAR *tau, SCALAR *sa, SCALAR *stau, SCALAR *swork, long stable, void *arena) {
  f->m = m, f->n = n, f->k = asks ? 0 : m < n ? m : n, f->lda = f->kept_lda = lda;
  f->sa = sa, f->stau = stau, f->swork = swork, f->a = a, f->tau = tau;
  if (sa && f->k) {
    int one = 1;
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', m, n, a, &f->kept_lda);
    f->tau = OF(keep_vector)(arena, je_is_stable(stable, 1), f->k, tau, &one);
  }
}

static void OF(triangle_cotangent)(struct OF(reflections) * f) {
  int n = f->n, ld = je_at_least_one(f->m);
  if (f->swork) *f->swork = 0;
  SCALAR *old = f->sa && f->k ? OF(new_copy)('A', f->m, n, f->a, f->kept_lda) : 0;
  for (int k = f->k - 1; f->sa && k >= 0; k--) {
    int rows = f->m - k;
    const SCALAR *v = f->a + k + (index_t)k * f->kept_lda;
    SCALAR *vbar = f->sa + k + (index_t)k * f->lda, t = f->tau[k], beta = *v, alpha = beta * (1 - t);
    SCALAR taubar = f->stau ? CONJ(f->stau[k]) : 0;
    OF(reflect_back)(rows, n - k - 1, v, CONJ(t), vbar, &taubar, old + k + (k + 1) * (index_t)ld, vbar + f->lda, 1, ld,
                     1, f->lda);
    taubar = CONJ(taubar);
    old[k + k * (index_t)ld] = alpha;
    for (int i = 1; i < rows; i++) old[k + i + k * (index_t)ld] = -t * beta * v[i];
    if (OF(is_smooth)(t, rows)) {
      SCALAR distance = -t * beta, sum = 0;
      for (int i = 1; i < rows; i++) vbar[i] /= CONJ(distance), sum += CONJ(v[i]) * vbar[i];
      REAL betabar = REAL_PART(*vbar + sum + CONJ(taubar) * alpha / (beta * beta));
      *vbar = betabar * alpha / beta - sum - taubar / beta;
      for (int i = 1; i < rows; i++) vbar[i] += betabar * distance * v[i] / beta;
    } else if (rows > 1) {
      int used = taubar != 0;
      for (int i = 0; i < rows; i++) used |= vbar[i] != 0;
      for (int i = 0; used && i < rows; i++) vbar[i] = (SCALAR)__builtin_nan("");
    }
  }
  for (int k = 0; f->stau && k < f->k; k++) f->stau[k] = 0;
  free(old);
}

void RULE(geqrf, _jvp)(const int *m, const int *n, SCALAR *a, const int *lda, SCALAR *tau, SCALAR *work,
                       const int *lwork, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork) {
  SCALAR *old = sa && *lwork != -1 ? OF(new_copy)('A', *m, *n, a, *lda) : 0;
  BLAS(geqrf)(m, n, a, lda, tau, work, lwork, info);
  if (swork) *swork = 0;
  if (*lwork != -1) OF(triangle_tangent)(*m, *n, a, *lda, tau, old, sa, stau);
  free(old);
}

void *RULE(geqrf, _forward)(const int *m, const int *n, SCALAR *a, const int *lda, SCALAR *tau, SCALAR *work,
                            const int *lwork, int *info, SCALAR *sa, SCALAR *stau, SCALAR *swork, long stable,
                            void *arena) {
  struct OF(reflections) *f = je_arena_allocate(arena, sizeof *f);
  BLAS(geqrf)(m, n, a, lda, tau, work, lwork, info);
  OF(triangle_kept)(f, *m, *n, *lwork == -1, a, *lda, tau, sa, stau, swork, stable, arena);
  return f;
}

void RULE(geqrf, _reverse)(void *frame) { OF(triangle_cotangent)(frame); }

/* Step `step` of Q c, Q^H c, c Q or c Q^H takes reflection k: v starts in row k, and row (left) or column k of c. From
   the right, conj(c) is reflected by rows: c H is the conjugate transpose of H^H c^H. */
static inline int OF(nth_reflection)(int left, int turned, int k, int step) {
  return left == turned ? step : k - 1 - step;
}

static inline SCALAR OF(nth_factor)(int left, int turned, SCALAR tau) { return left == turned ? CONJ(tau) : tau; }

void RULE(ABOUT_Q(mqr), _jvp)(const char *side, const char *trans, const int *m, const int *n, const int *k,
                              const SCALAR *a, const int *lda, const SCALAR *tau, SCALAR *c, const int *ldc,
                              SCALAR *work, const int *lwork, int *info, const SCALAR *sa, const SCALAR *stau,
                              SCALAR *sc, SCALAR *swork) {
  int left = je_upper(side) == 'L', turned = OF(operation)(trans) != 'N', ld = je_at_least_one(*m);
  SCALAR *old = sc && *lwork != -1 ? OF(new_copy)('A', *m, *n, c, *ldc) : 0;
  BLAS(ABOUT_Q(mqr))(side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info);
  if (swork) *swork = 0;
  if (old && !left) OF(conjugate_part)(*m, *n, old, ld), OF(conjugate_part)(*m, *n, sc, *ldc);
  for (int step = 0; old && step < *k; step++) {
    int r = OF(nth_reflection)(left, turned, *k, step);
    index_t place = r + (index_t)r * *lda;
    OF(reflect)((left ? *m : *n) - r, left ? *n : *m, a + place, OF(nth_factor)(left, turned, tau[r]),
                sa ? sa + place : 0, stau ? OF(nth_factor)(left, turned, stau[r]) : 0,
                old + r * (left ? 1 : (index_t)ld), sc + r * (left ? 1 : (index_t)*ldc), left ? 1 : ld, left ? ld : 1,
                left ? 1 : *ldc, left ? *ldc : 1);
  }
  if (old && !left) OF(conjugate_part)(*m, *n, sc, *ldc);
  free(old);
}

void *RULE(ABOUT_Q(mqr), _forward)(const char *side, const char *trans, const int *m, const int *n, const int *k,
                                   const SCALAR *a, const int *lda, const SCALAR *tau, SCALAR *c, const int *ldc,
                                   SCALAR *work, const int *lwork, int *info, SCALAR *sa, SCALAR *stau, SCALAR *sc,
                                   SCALAR *swork, long stable, void *arena) {
  struct OF(reflections) *f = je_arena_allocate(arena, sizeof *f);
  f->m = *m, f->n = *n, f->k = *lwork == -1 ? 0 : *k, f->lda = f->kept_lda = *lda, f->ldc = f->kept_ldc = *ldc;
  f->left = je_upper(side) == 'L', f->turned = OF(operation)(trans) != 'N';
  f->sa = sa, f->stau = stau, f->sc = sc, f->swork = swork, f->a = a, f->tau = tau, f->c = c;
  if (sc && f->k) {
    int one = 1;
    f->a = OF(keep_part)(arena, je_is_stable(stable, 0), 'A', f->left ? *m : *n, *k, a, &f->kept_lda);
    f->tau = OF(keep_vector)(arena, je_is_stable(stable, 1), *k, tau, &one);
  }
  BLAS(ABOUT_Q(mqr))(side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info);
  if (sc && f->k && (sa || stau)) f->c = OF(keep_part)(arena, je_is_stable(stable, 2), 'A', *m, *n, c, &f->kept_ldc);
  return f;
}

void RULE(ABOUT_Q(mqr), _reverse)(void *frame) {
  struct OF(reflections) *f = frame;
  int left = f->left, ld = je_at_least_one(f->m);
  if (f->swork) *f->swork = 0;
  if (!f->sc || !f->k) return;
  SCALAR *old = f->sa || f->stau ? OF(new_copy)('A', f->m, f->n, f->c, f->kept_ldc) : 0;
  if (!left) OF(conjugate_part)(f->m, f->n, f->sc, f->ldc);
  if (old && !left) OF(conjugate_part)(f->m, f->n, old, ld);
  for (int step = f->k - 1; step >= 0; step--) {
    int r = OF(nth_reflection)(left, f->turned, f->k, step);
    SCALAR taubar = 0;
    OF(reflect_back)((left ? f->m : f->n) - r, left ? f->n : f->m, f->a + r + (index_t)r * f->kept_lda,
                     OF(nth_factor)(left, f->turned, f->tau[r]), f->sa ? f->sa + r + (index_t)r * f->lda : 0, &taubar,
                     old ? old + r * (left ? 1 : (index_t)ld) : 0, f->sc + r * (left ? 1 : (index_t)f->ldc),
                     left ? 1 : ld, left ? ld : 1, left ? 1 : f->ldc, left ? f->ldc : 1);
    if (f->stau) f->stau[r] += OF(nth_factor)(left, f->turned, taubar);
  }
  if (!left) OF(conjugate_part)(f->m, f->n, f->sc, f->ldc);
  free(old);
}

/* In terms of these. L Q of A is Q R of A^H. */

static SCALAR *OF(new_turned)(int m, int n, const SCALAR *a, int lda) {
  SCALAR *to = OF(new)((index_t)je_at_least_one(n) * m);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) to[j + (index_t)i * je_at_least_one(n)] = CONJ(a[i + (index_t)j * lda]);
  return to;
}

static void OF(turn_back)(int m, int n, const SCALAR *from, SCALAR *a, int lda) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) a[i + (index_t)j * lda] = CONJ(from[j + (index_t)i * je_at_least_one(n)]);
}

void BLAS(ABOUT_Q(gqr))(const int *m, const int *n, const int *k, SCALAR *a, const int *lda, const SCALAR *tau,
                        SCALAR *work, const int *lwork, int *info) {
  int ld = je_at_least_one(*m);
  *info = 0;
  if (OF(asks)(lwork, *n, work)) return;
  SCALAR *v = OF(new_copy)('A', *m, *k, a, *lda);
  OF(identity)(*m, *n, a, *lda);
  BLAS(ABOUT_Q(mqr))(&je_left, &je_as_it_is, m, n, k, v, &ld, tau, a, lda, work, lwork, info);
  free(v);
}

void BLAS(gelqf)(const int *m, const int *n, SCALAR *a, const int *lda, SCALAR *tau, SCALAR *work, const int *lwork,
                 int *info) {
  int ld = je_at_least_one(*n);
  *info = 0;
  if (OF(asks)(lwork, *m, work)) return;
  SCALAR *turned = OF(new_turned)(*m, *n, a, *lda);
  BLAS(geqrf)(n, m, turned, &ld, tau, work, lwork, info);
  OF(turn_back)(*m, *n, turned, a, *lda);
  free(turned);
}

void BLAS(ABOUT_Q(mlq))(const char *side, const char *trans, const int *m, const int *n, const int *k, const SCALAR *a,
                        const int *lda, const SCALAR *tau, SCALAR *c, const int *ldc, SCALAR *work, const int *lwork,
                        int *info) {
  int left = je_upper(side) == 'L', length = left ? *m : *n, ld = je_at_least_one(length);
  char op = OF(adjoint)(OF(operation)(trans));
  *info = 0;
  if (OF(asks)(lwork, left ? *n : *m, work)) return;
  SCALAR *v = OF(new_turned)(*k, length, a, *lda);
  BLAS(ABOUT_Q(mqr))(side, &op, m, n, k, v, &ld, tau, c, ldc, work, lwork, info);
  free(v);
}

void BLAS(ABOUT_Q(glq))(const int *m, const int *n, const int *k, SCALAR *a, const int *lda, const SCALAR *tau,
                        SCALAR *work, const int *lwork, int *info) {
  int ld = je_at_least_one(*n);
  *info = 0;
  if (OF(asks)(lwork, *m, work)) return;
  SCALAR *turned = OF(new_turned)(*m, *n, a, *lda);
  BLAS(ABOUT_Q(gqr))(n, m, k, turned, &ld, tau, work, lwork, info);
  OF(turn_back)(*m, *n, turned, a, *lda);
  free(turned);
}

/* Least squares, or the smallest solution: by reflections of the longer side. */
void BLAS(gels)(const char *trans, const int *m, const int *n, const int *nrhs, SCALAR *a, const int *lda, SCALAR *b,
                const int *ldb, SCALAR *work, const int *lwork, int *info) {
  int tall = *m >= *n, size = tall ? *n : *m, length = tall ? *m : *n, turned = OF(operation)(trans) != 'N';
  char upper = 'U', lower = 'L', plain = 'N', other = OF(adjoint)('N'), triangle = tall ? upper : lower;
  *info = 0;
  if (OF(asks)(lwork, size + (*nrhs > size ? *nrhs : size), work)) return;
  if (size == 0 || *nrhs == 0) {
    OF(fill_part)('A', 0, length, *nrhs, 0, b, *ldb);
    return;
  }
  SCALAR *tau = OF(new)(size);
  if (tall)
    BLAS(geqrf)(m, n, a, lda, tau, work, lwork, info);
  else
    BLAS(gelqf)(m, n, a, lda, tau, work, lwork, info);
  *info = OF(first_zero)(size, a, *lda);
  char *op = turned ? &other : &plain;
  if (*info == 0 && tall != turned) {
    if (tall)
      BLAS(ABOUT_Q(mqr))(&je_left, &other, m, nrhs, n, a, lda, tau, b, ldb, work, lwork, info);
    else
      BLAS(ABOUT_Q(mlq))(&je_left, &plain, n, nrhs, m, a, lda, tau, b, ldb, work, lwork, info);
    BLAS(trsm)(&je_left, &triangle, op, &plain, &size, nrhs, &OF(one), a, lda, b, ldb);
  } else if (*info == 0) {
    BLAS(trsm)(&je_left, &triangle, op, &plain, &size, nrhs, &OF(one), a, lda, b, ldb);
    for (int r = 0; r < *nrhs; r++)
      for (int i = size; i < length; i++) b[i + (index_t)r * *ldb] = 0;
    if (tall)
      BLAS(ABOUT_Q(mqr))(&je_left, &plain, m, nrhs, n, a, lda, tau, b, ldb, work, lwork, info);
    else
      BLAS(ABOUT_Q(mlq))(&je_left, &other, n, nrhs, m, a, lda, tau, b, ldb, work, lwork, info);
  }
  free(tau);
}

/* The least squares solution among those of B x = d: of y = Q^H x with B^H = Q R, the first numbers follow from d, and
   the others are a least squares solution without conditions. Behind its place in c lies the size of the residual; what
   is destroyed is no number. */
void BLAS(gglse)(const int *m, const int *n, const int *p, SCALAR *a, const int *lda, SCALAR *b, const int *ldb,
                 SCALAR *c, SCALAR *d, SCALAR *x, SCALAR *work, const int *lwork, int *info) {
  int rest = *n - *p, ld = je_at_least_one(*n), room = 64 * (*m + *n + *p) + 64;
  char plain = 'N', upper = 'U', turned = OF(adjoint)('N');
  SCALAR none = (SCALAR)__builtin_nan("");
  *info = 0;
  if (OF(asks)(lwork, *m + *n + *p, work) || *n == 0) return;
  SCALAR *q = OF(new_turned)(*p, *n, b, *ldb), *tau = OF(new)(*p), *space = OF(new)(room);
  BLAS(geqrf)(n, p, q, &ld, tau, space, &room, info);
  *info = OF(first_zero)(*p, q, ld) != 0;
  if (*info == 0) {
    for (int i = 0; i < *n; i++) x[i] = i < *p ? d[i] : 0;
    BLAS(trsv)(&upper, &turned, &plain, p, q, &ld, x, &je_one_int);
    BLAS(ABOUT_Q(mqr))(&je_right, &plain, m, n, p, q, &ld, tau, a, lda, space, &room, info);
    BLAS(gemv)(&plain, m, p, &OF(minus_one), a, lda, x, &je_one_int, &OF(one), c, &je_one_int);
    if (rest > 0) BLAS(gels)(&plain, m, &rest, &je_one_int, a + *p * (index_t)*lda, lda, c, m, space, &room, info);
    if (*info != 0) *info = 2;
    int count = *m - rest;
    for (int i = 0; i < rest; i++) x[*p + i] = c[i], c[i] = none;
    SCALAR size = NORM2(&count, c + rest, &je_one_int);
    for (int i = 0; i < count; i++) c[rest + i] = i == 0 ? size : 0;
    if (*info == 0) BLAS(ABOUT_Q(mqr))(&je_left, &plain, n, &je_one_int, p, q, &ld, tau, x, &ld, space, &room, info);
  }
  OF(fill_part)('A', 0, *m, *n, none, a, *lda);
  OF(fill_part)('A', 0, *p, *n, none, b, *ldb);
  OF(fill)(*p, none, d, 1);
  free(space);
  free(tau);
  free(q);
}
