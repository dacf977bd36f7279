/* Vectors. xbar is the cotangent of x; what a routine overwrites has its new cotangent before, its old one after. */

struct OF(value_tangent) {
  SCALAR value, tangent;
};

struct OF(value_frame) {
  SCALAR value;
  void *frame;
};

struct OF(real_value_tangent) {
  REAL value, tangent;
};

struct OF(real_value_frame) {
  REAL value;
  void *frame;
};

#ifndef COMPLEX

/* r = x . y:  xbar += rbar y, ybar += rbar x */

struct OF(value_tangent) RULE(dot, _jvp)(const int *n, const SCALAR *x, const int *incx, const SCALAR *y,
                                         const int *incy, const SCALAR *sx, const SCALAR *sy) {
  struct OF(value_tangent) result = {BLAS(dot)(n, x, incx, y, incy), 0};
  if (sx) result.tangent += BLAS(dot)(n, sx, incx, y, incy);
  if (sy) result.tangent += BLAS(dot)(n, x, incx, sy, incy);
  return result;
}

struct OF(dot_frame) {
  int n, incx, incy, kept_incx, kept_incy;
  const SCALAR *x, *y;
  SCALAR *sx, *sy;
};

struct OF(value_frame) RULE(dot, _forward)(const int *n, const SCALAR *x, const int *incx, const SCALAR *y,
                                           const int *incy, SCALAR *sx, SCALAR *sy, long stable, void *arena) {
  struct OF(dot_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->n = *n, f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->sx = sx, f->sy = sy, f->x = x, f->y = y;
  if (sy) f->x = OF(keep_vector)(arena, je_is_stable(stable, 0), f->n, x, &f->kept_incx);
  if (sx) f->y = OF(keep_vector)(arena, je_is_stable(stable, 1), f->n, y, &f->kept_incy);
  struct OF(value_frame) result = {BLAS(dot)(n, x, incx, y, incy), f};
  return result;
}

void RULE(dot, _reverse)(void *frame, SCALAR rbar) {
  struct OF(dot_frame) *f = frame;
  if (f->sx) OF(accumulate)(f->n, rbar, f->y, f->kept_incy, f->sx, f->incx);
  if (f->sy) OF(accumulate)(f->n, rbar, f->x, f->kept_incx, f->sy, f->incy);
}

#endif

/* y = y + alpha x:  xbar += conj(alpha) ybar, alphabar += <x, ybar> */

void RULE(axpy, _jvp)(const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, SCALAR *y, const int *incy,
                      const SCALAR *salpha, const SCALAR *sx, SCALAR *sy) {
  if (sy && sx) BLAS(axpy)(n, alpha, sx, incx, sy, incy);
  if (sy && salpha) BLAS(axpy)(n, salpha, x, incx, sy, incy);
  BLAS(axpy)(n, alpha, x, incx, y, incy);
}

struct OF(axpy_frame) {
  int n, incx, incy, kept_incx;
  SCALAR alpha;
  const SCALAR *x;
  SCALAR *salpha, *sx, *sy;
};

void *RULE(axpy, _forward)(const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx, SCALAR *y,
                           const int *incy, SCALAR *salpha, SCALAR *sx, SCALAR *sy, long stable, void *arena) {
  struct OF(axpy_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->n = *n, f->incx = f->kept_incx = *incx, f->incy = *incy, f->alpha = *alpha;
  f->salpha = salpha, f->sx = sx, f->sy = sy, f->x = x;
  if (sy && salpha) f->x = OF(keep_vector)(arena, je_is_stable(stable, 1), f->n, x, &f->kept_incx);
  BLAS(axpy)(n, alpha, x, incx, y, incy);
  return f;
}

void RULE(axpy, _reverse)(void *frame) {
  struct OF(axpy_frame) *f = frame;
  if (!f->sy) return;
  if (f->salpha) *f->salpha += OF(inner)(f->n, f->x, f->kept_incx, f->sy, f->incy);
  if (f->sx) OF(accumulate)(f->n, CONJ(f->alpha), f->sy, f->incy, f->sx, f->incx);
}

/* x = alpha x:  alphabar += <x, xbar>, xbar = conj(alpha) xbar. Nothing happens where the stride is not positive. */

void RULE(scal, _jvp)(const int *n, const SCALAR *alpha, SCALAR *x, const int *incx, const SCALAR *salpha, SCALAR *sx) {
  if (sx && *incx > 0) {
    OF(scale)(*n, *alpha, sx, *incx);
    if (salpha) BLAS(axpy)(n, salpha, x, incx, sx, incx);
  }
  BLAS(scal)(n, alpha, x, incx);
}

struct OF(scal_frame) {
  int n, incx, kept_incx;
  SCALAR alpha;
  const SCALAR *x;
  SCALAR *salpha, *sx;
};

void *RULE(scal, _forward)(const int *n, const SCALAR *alpha, SCALAR *x, const int *incx, SCALAR *salpha, SCALAR *sx,
                           long stable, void *arena) {
  struct OF(scal_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = f->kept_incx = *incx, f->alpha = *alpha;
  f->salpha = salpha, f->sx = *incx > 0 ? sx : 0, f->x = x;
  if (f->sx && salpha) f->x = OF(keep_vector)(arena, 0, f->n, x, &f->kept_incx);
  BLAS(scal)(n, alpha, x, incx);
  return f;
}

void RULE(scal, _reverse)(void *frame) {
  struct OF(scal_frame) *f = frame;
  if (!f->sx) return;
  if (f->salpha) *f->salpha += OF(inner)(f->n, f->x, f->kept_incx, f->sx, f->incx);
  OF(scale)(f->n, CONJ(f->alpha), f->sx, f->incx);
}

/* y = x:  xbar += ybar, ybar = 0. With stride 0 the last element of x stays in y. */

void RULE(copy, _jvp)(const int *n, const SCALAR *x, const int *incx, SCALAR *y, const int *incy, const SCALAR *sx,
                      SCALAR *sy) {
  if (sy && sx) BLAS(copy)(n, sx, incx, sy, incy);
  if (sy && !sx) OF(fill)(*n, 0, sy, *incy);
  BLAS(copy)(n, x, incx, y, incy);
}

struct OF(copy_frame) {
  int n, incx, incy;
  SCALAR *sx, *sy;
};

void *RULE(copy, _forward)(const int *n, const SCALAR *x, const int *incx, SCALAR *y, const int *incy, SCALAR *sx,
                           SCALAR *sy, long stable, void *arena) {
  struct OF(copy_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = *incx, f->incy = *incy, f->sx = sx, f->sy = sy;
  BLAS(copy)(n, x, incx, y, incy);
  return f;
}

void RULE(copy, _reverse)(void *frame) {
  struct OF(copy_frame) *f = frame;
  if (!f->sy || f->n <= 0) return;
  if (f->sx && f->incy == 0)
    f->sx[je_start(f->n, f->incx) + (index_t)(f->n - 1) * f->incx] += *f->sy;
  else if (f->sx)
    OF(accumulate)(f->n, 1, f->sy, f->incy, f->sx, f->incx);
  OF(fill)(f->n, 0, f->sy, f->incy);
}

/* x, y = y, x:  the cotangents change places as well */

static void OF(swap_shadows)(int n, SCALAR *sx, int incx, SCALAR *sy, int incy) {
  if (sx && sy)
    BLAS(swap)(&n, sx, &incx, sy, &incy);
  else if (sx)
    OF(fill)(n, 0, sx, incx);
  else if (sy)
    OF(fill)(n, 0, sy, incy);
}

void RULE(swap, _jvp)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, SCALAR *sx, SCALAR *sy) {
  OF(swap_shadows)(*n, sx, *incx, sy, *incy);
  BLAS(swap)(n, x, incx, y, incy);
}

void *RULE(swap, _forward)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, SCALAR *sx, SCALAR *sy,
                           long stable, void *arena) {
  struct OF(copy_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = *incx, f->incy = *incy, f->sx = sx, f->sy = sy;
  BLAS(swap)(n, x, incx, y, incy);
  return f;
}

void RULE(swap, _reverse)(void *frame) {
  struct OF(copy_frame) *f = frame;
  OF(swap_shadows)(f->n, f->sx, f->incx, f->sy, f->incy);
}

#ifndef COMPLEX

extern REAL BLAS(nrm2)(const int *, const SCALAR *, const int *);
extern REAL BLAS(asum)(const int *, const SCALAR *, const int *);
extern void BLAS(rot)(const int *, SCALAR *, const int *, SCALAR *, const int *, const REAL *, const REAL *);

/* r = |x|:  xbar += rbar x / r; zero where r is zero */

struct OF(real_value_tangent) RULE(nrm2, _jvp)(const int *n, const SCALAR *x, const int *incx, const SCALAR *sx) {
  struct OF(real_value_tangent) result = {BLAS(nrm2)(n, x, incx), 0};
  if (sx && result.value != 0) result.tangent = BLAS(dot)(n, x, incx, sx, incx) / result.value;
  return result;
}

struct OF(norm_frame) {
  int n, incx, kept_incx;
  REAL value;
  const SCALAR *x;
  SCALAR *sx;
};

struct OF(real_value_frame)
    RULE(nrm2, _forward)(const int *n, const SCALAR *x, const int *incx, SCALAR *sx, long stable, void *arena) {
  struct OF(norm_frame) *f = je_arena_allocate(arena, sizeof *f);
  struct OF(real_value_frame) result = {BLAS(nrm2)(n, x, incx), f};
  f->n = *n, f->incx = f->kept_incx = *incx, f->value = result.value, f->sx = sx, f->x = x;
  if (sx) f->x = OF(keep_vector)(arena, je_is_stable(stable, 0), f->n, x, &f->kept_incx);
  return result;
}

void RULE(nrm2, _reverse)(void *frame, REAL rbar) {
  struct OF(norm_frame) *f = frame;
  if (f->sx && f->value != 0) OF(accumulate)(f->n, rbar / f->value, f->x, f->kept_incx, f->sx, f->incx);
}

/* r = sum of |x_i|:  xbar_i += rbar sign(x_i), where the sign of 0 is 1, as in the rule of fabs. BLAS returns 0 where
   the stride is not positive. */

struct OF(real_value_tangent) RULE(asum, _jvp)(const int *n, const SCALAR *x, const int *incx, const SCALAR *sx) {
  struct OF(real_value_tangent) result = {BLAS(asum)(n, x, incx), 0};
  if (sx && *incx > 0)
    for (int i = 0; i < *n; i++) {
      index_t at = (index_t)i * *incx;
      result.tangent += x[at] >= 0 ? sx[at] : -sx[at];
    }
  return result;
}

struct OF(real_value_frame)
    RULE(asum, _forward)(const int *n, const SCALAR *x, const int *incx, SCALAR *sx, long stable, void *arena) {
  struct OF(norm_frame) *f = je_arena_allocate(arena, sizeof *f);
  struct OF(real_value_frame) result = {BLAS(asum)(n, x, incx), f};
  f->n = *n, f->incx = f->kept_incx = *incx, f->sx = *incx > 0 ? sx : 0, f->x = x;
  if (f->sx) f->x = OF(keep_vector)(arena, je_is_stable(stable, 0), f->n, x, &f->kept_incx);
  return result;
}

void RULE(asum, _reverse)(void *frame, REAL rbar) {
  struct OF(norm_frame) *f = frame;
  if (!f->sx) return;
  for (int i = 0; i < f->n; i++) {
    index_t at = (index_t)i * f->incx;
    f->sx[at] += f->x[(index_t)i * f->kept_incx] >= 0 ? rbar : -rbar;
  }
}

/* x, y = c x + s y, c y - s x:  xbar, ybar = c xbar - s ybar, c ybar + s xbar;
   cbar += <x, xbar> + <y, ybar>, sbar += <y, xbar> - <x, ybar> */

static void OF(rotate_shadows)(int n, SCALAR *sx, int incx, SCALAR *sy, int incy, REAL c, REAL s) {
  if (sx && sy)
    BLAS(rot)(&n, sx, &incx, sy, &incy, &c, &s);
  else if (sx)
    OF(scale)(n, c, sx, incx);
  else if (sy)
    OF(scale)(n, c, sy, incy);
}

void RULE(rot, _jvp)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, const REAL *c, const REAL *s,
                     SCALAR *sx, SCALAR *sy, const REAL *sc, const REAL *ss) {
  OF(rotate_shadows)(*n, sx, *incx, sy, *incy, *c, *s);
  if (sc && sx) BLAS(axpy)(n, sc, x, incx, sx, incx);
  if (sc && sy) BLAS(axpy)(n, sc, y, incy, sy, incy);
  if (ss && sx) BLAS(axpy)(n, ss, y, incy, sx, incx);
  if (ss && sy) {
    REAL minus = -*ss;
    BLAS(axpy)(n, &minus, x, incx, sy, incy);
  }
  BLAS(rot)(n, x, incx, y, incy, c, s);
}

struct OF(rot_frame) {
  int n, incx, incy, kept_incx, kept_incy;
  REAL c, s;
  const SCALAR *x, *y;
  SCALAR *sx, *sy;
  REAL *sc, *ss;
};

void *RULE(rot, _forward)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, const REAL *c,
                          const REAL *s, SCALAR *sx, SCALAR *sy, REAL *sc, REAL *ss, long stable, void *arena) {
  struct OF(rot_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy, f->c = *c, f->s = *s;
  f->sx = sx, f->sy = sy, f->sc = sc, f->ss = ss, f->x = x, f->y = y;
  if ((sx || sy) && (sc || ss)) {
    f->x = OF(keep_vector)(arena, 0, f->n, x, &f->kept_incx);
    f->y = OF(keep_vector)(arena, 0, f->n, y, &f->kept_incy);
  }
  BLAS(rot)(n, x, incx, y, incy, c, s);
  return f;
}

void RULE(rot, _reverse)(void *frame) {
  struct OF(rot_frame) *f = frame;
  if (f->sc && f->sx) *f->sc += OF(inner)(f->n, f->x, f->kept_incx, f->sx, f->incx);
  if (f->sc && f->sy) *f->sc += OF(inner)(f->n, f->y, f->kept_incy, f->sy, f->incy);
  if (f->ss && f->sx) *f->ss += OF(inner)(f->n, f->y, f->kept_incy, f->sx, f->incx);
  if (f->ss && f->sy) *f->ss -= OF(inner)(f->n, f->x, f->kept_incx, f->sy, f->incy);
  OF(rotate_shadows)(f->n, f->sx, f->incx, f->sy, f->incy, f->c, -f->s);
}

#endif
