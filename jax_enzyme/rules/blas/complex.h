/* What only complex numbers have: real scalars, Hermitian matrices, and two products of vectors. The diagonal of a
   Hermitian matrix is real: its imaginary part is neither read nor differentiated. */

#ifdef COMPLEX

/* Routines whose names have both letters, as in zdscal and dznrm2. */
#define MIXED(name) JOIN(JOIN(LETTER, REAL_LETTER), JOIN(name, _))
#define MIXED_RULE(name, part) JOIN(JOIN3(je_, LETTER, REAL_LETTER), JOIN(name, part))
#define NORM(name) JOIN(JOIN(REAL_LETTER, LETTER), JOIN(name, _))
#define NORM2 NORM(nrm2)
#define NORM_RULE(name, part) JOIN(JOIN3(je_, REAL_LETTER, LETTER), JOIN(name, part))

extern void MIXED(scal)(const int *, const REAL *, SCALAR *, const int *);
extern void MIXED(rot)(const int *, SCALAR *, const int *, SCALAR *, const int *, const REAL *, const REAL *);
extern REAL NORM(nrm2)(const int *, const SCALAR *, const int *);
extern REAL NORM(asum)(const int *, const SCALAR *, const int *);
extern void BLAS(hemv)(const char *, const int *, const SCALAR *, const SCALAR *, const int *, const SCALAR *,
                       const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(hemm)(const char *, const char *, const int *, const int *, const SCALAR *, const SCALAR *,
                       const int *, const SCALAR *, const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(herk)(const char *, const char *, const int *, const int *, const REAL *, const SCALAR *, const int *,
                       const REAL *, SCALAR *, const int *);
extern void BLAS(her2k)(const char *, const char *, const int *, const int *, const SCALAR *, const SCALAR *,
                        const int *, const SCALAR *, const int *, const REAL *, SCALAR *, const int *);

static const REAL OF(real_one) = 1;

/* dot products: sums of real ones, of which the differentiation takes care */

SCALAR BLAS(dotc)(const int *n, const SCALAR *x, const int *incx, const SCALAR *y, const int *incy) {
  return OF(inner)(*n, x, *incx, y, *incy);
}

SCALAR BLAS(dotu)(const int *n, const SCALAR *x, const int *incx, const SCALAR *y, const int *incy) {
  return OF(plain_dot)(*n, x, *incx, y, *incy);
}

/* x = alpha x, alpha real:  alphabar += Re <x, xbar>, xbar = alpha xbar */

void MIXED_RULE(scal, _jvp)(const int *n, const REAL *alpha, SCALAR *x, const int *incx, const REAL *salpha,
                            SCALAR *sx) {
  if (sx && *incx > 0) {
    OF(scale)(*n, *alpha, sx, *incx);
    if (salpha) OF(accumulate)(*n, *salpha, x, *incx, sx, *incx);
  }
  MIXED(scal)(n, alpha, x, incx);
}

struct OF(real_scal_frame) {
  int n, incx, kept_incx;
  REAL alpha;
  const SCALAR *x;
  REAL *salpha;
  SCALAR *sx;
};

void *MIXED_RULE(scal, _forward)(const int *n, const REAL *alpha, SCALAR *x, const int *incx, REAL *salpha, SCALAR *sx,
                                 long stable, void *arena) {
  struct OF(real_scal_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = f->kept_incx = *incx, f->alpha = *alpha;
  f->salpha = salpha, f->sx = *incx > 0 ? sx : 0, f->x = x;
  if (f->sx && salpha) f->x = OF(keep_vector)(arena, 0, f->n, x, &f->kept_incx);
  MIXED(scal)(n, alpha, x, incx);
  return f;
}

void MIXED_RULE(scal, _reverse)(void *frame) {
  struct OF(real_scal_frame) *f = frame;
  if (!f->sx) return;
  if (f->salpha) *f->salpha += __real__ OF(inner)(f->n, f->x, f->kept_incx, f->sx, f->incx);
  OF(scale)(f->n, f->alpha, f->sx, f->incx);
}

/* x, y = c x + s y, c y - s x with real c and s, as for real vectors */

static void OF(rotate_shadows)(int n, SCALAR *sx, int incx, SCALAR *sy, int incy, REAL c, REAL s) {
  if (sx && sy)
    MIXED(rot)(&n, sx, &incx, sy, &incy, &c, &s);
  else if (sx)
    OF(scale)(n, c, sx, incx);
  else if (sy)
    OF(scale)(n, c, sy, incy);
}

void MIXED_RULE(rot, _jvp)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, const REAL *c,
                           const REAL *s, SCALAR *sx, SCALAR *sy, const REAL *sc, const REAL *ss) {
  OF(rotate_shadows)(*n, sx, *incx, sy, *incy, *c, *s);
  if (sc && sx) OF(accumulate)(*n, *sc, x, *incx, sx, *incx);
  if (sc && sy) OF(accumulate)(*n, *sc, y, *incy, sy, *incy);
  if (ss && sx) OF(accumulate)(*n, *ss, y, *incy, sx, *incx);
  if (ss && sy) OF(accumulate)(*n, -*ss, x, *incx, sy, *incy);
  MIXED(rot)(n, x, incx, y, incy, c, s);
}

struct OF(rot_frame) {
  int n, incx, incy, kept_incx, kept_incy;
  REAL c, s;
  const SCALAR *x, *y;
  SCALAR *sx, *sy;
  REAL *sc, *ss;
};

void *MIXED_RULE(rot, _forward)(const int *n, SCALAR *x, const int *incx, SCALAR *y, const int *incy, const REAL *c,
                                const REAL *s, SCALAR *sx, SCALAR *sy, REAL *sc, REAL *ss, long stable, void *arena) {
  struct OF(rot_frame) *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  f->n = *n, f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy, f->c = *c, f->s = *s;
  f->sx = sx, f->sy = sy, f->sc = sc, f->ss = ss, f->x = x, f->y = y;
  if ((sx || sy) && (sc || ss)) {
    f->x = OF(keep_vector)(arena, 0, f->n, x, &f->kept_incx);
    f->y = OF(keep_vector)(arena, 0, f->n, y, &f->kept_incy);
  }
  MIXED(rot)(n, x, incx, y, incy, c, s);
  return f;
}

void MIXED_RULE(rot, _reverse)(void *frame) {
  struct OF(rot_frame) *f = frame;
  if (f->sc && f->sx) *f->sc += __real__ OF(inner)(f->n, f->x, f->kept_incx, f->sx, f->incx);
  if (f->sc && f->sy) *f->sc += __real__ OF(inner)(f->n, f->y, f->kept_incy, f->sy, f->incy);
  if (f->ss && f->sx) *f->ss += __real__ OF(inner)(f->n, f->y, f->kept_incy, f->sx, f->incx);
  if (f->ss && f->sy) *f->ss -= __real__ OF(inner)(f->n, f->x, f->kept_incx, f->sy, f->incy);
  OF(rotate_shadows)(f->n, f->sx, f->incx, f->sy, f->incy, f->c, -f->s);
}

/* r = |x|:  xbar += rbar x / r; r = sum of |Re x_i| + |Im x_i|:  xbar_i += rbar times the signs */

struct OF(norm_frame) {
  int n, incx, kept_incx;
  REAL value;
  const SCALAR *x;
  SCALAR *sx;
};

struct OF(real_value_tangent) NORM_RULE(nrm2, _jvp)(const int *n, const SCALAR *x, const int *incx, const SCALAR *sx) {
  struct OF(real_value_tangent) result = {NORM(nrm2)(n, x, incx), 0};
  if (sx && result.value != 0) result.tangent = __real__ OF(inner)(*n, x, *incx, sx, *incx) / result.value;
  return result;
}

struct OF(real_value_frame)
    NORM_RULE(nrm2, _forward)(const int *n, const SCALAR *x, const int *incx, SCALAR *sx, long stable, void *arena) {
  struct OF(norm_frame) *f = je_arena_allocate(arena, sizeof *f);
  struct OF(real_value_frame) result = {NORM(nrm2)(n, x, incx), f};
  f->n = *n, f->incx = f->kept_incx = *incx, f->value = result.value, f->sx = sx, f->x = x;
  if (sx) f->x = OF(keep_vector)(arena, je_is_stable(stable, 0), f->n, x, &f->kept_incx);
  return result;
}

void NORM_RULE(nrm2, _reverse)(void *frame, REAL rbar) {
  struct OF(norm_frame) *f = frame;
  if (f->sx && f->value != 0) OF(accumulate)(f->n, rbar / f->value, f->x, f->kept_incx, f->sx, f->incx);
}

struct OF(real_value_tangent) NORM_RULE(asum, _jvp)(const int *n, const SCALAR *x, const int *incx, const SCALAR *sx) {
  struct OF(real_value_tangent) result = {NORM(asum)(n, x, incx), 0};
  if (sx && *incx > 0)
    for (int i = 0; i < *n; i++) {
      index_t at = (index_t)i * *incx;
      result.tangent += __real__ x[at] >= 0 ? __real__ sx[at] : -__real__ sx[at];
      result.tangent += __imag__ x[at] >= 0 ? __imag__ sx[at] : -__imag__ sx[at];
    }
  return result;
}

struct OF(real_value_frame)
    NORM_RULE(asum, _forward)(const int *n, const SCALAR *x, const int *incx, SCALAR *sx, long stable, void *arena) {
  struct OF(norm_frame) *f = je_arena_allocate(arena, sizeof *f);
  struct OF(real_value_frame) result = {NORM(asum)(n, x, incx), f};
  f->n = *n, f->incx = f->kept_incx = *incx, f->sx = *incx > 0 ? sx : 0, f->x = x;
  if (f->sx) f->x = OF(keep_vector)(arena, je_is_stable(stable, 0), f->n, x, &f->kept_incx);
  return result;
}

void NORM_RULE(asum, _reverse)(void *frame, REAL rbar) {
  struct OF(norm_frame) *f = frame;
  if (!f->sx) return;
  for (int i = 0; i < f->n; i++) {
    SCALAR x = f->x[(index_t)i * f->kept_incx];
    f->sx[(index_t)i * f->incx] += __builtin_complex(__real__ x >= 0 ? rbar : -rbar, __imag__ x >= 0 ? rbar : -rbar);
  }
}

/* A = A + alpha x y^T (geru):  xbar += conj(alpha) G conj(y), ybar += conj(alpha) G^T conj(x)
   A = A + alpha x y^H (gerc):  xbar += conj(alpha) G y, ybar += alpha G^H x;  alphabar += <x y^T or x y^H, G> */

struct OF(ger_frame) {
  int m, n, lda, incx, kept_incx, incy, kept_incy;
  SCALAR alpha;
  const SCALAR *x, *y;
  SCALAR *salpha, *sx, *sy, *sa;
};

static struct OF(ger_frame) * OF(new_ger_frame)(const int *m, const int *n, const SCALAR *alpha, const SCALAR *x,
                                                const int *incx, const SCALAR *y, const int *incy, const int *lda,
                                                SCALAR *salpha, SCALAR *sx, SCALAR *sy, SCALAR *sa, long stable,
                                                void *arena) {
  struct OF(ger_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->m = *m, f->n = *n, f->lda = *lda, f->alpha = *alpha;
  f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->salpha = salpha, f->sx = sx, f->sy = sy, f->sa = *m > 0 && *n > 0 ? sa : 0, f->x = x, f->y = y;
  if (f->sa && (sy || salpha)) f->x = OF(keep_vector)(arena, je_is_stable(stable, 1), *m, x, &f->kept_incx);
  if (f->sa && (sx || salpha)) f->y = OF(keep_vector)(arena, je_is_stable(stable, 2), *n, y, &f->kept_incy);
  return f;
}

/* alphabar, with t = G conj(y) or G y */
static void OF(add_ger_alpha)(struct OF(ger_frame) * f, const SCALAR *y, int incy) {
  SCALAR *t = OF(new)(f->m);
  BLAS(gemv)(&je_as_it_is, &f->m, &f->n, &OF(one), f->sa, &f->lda, y, &incy, &OF(zero), t, &je_one_int);
  *f->salpha += OF(inner)(f->m, f->x, f->kept_incx, t, 1);
  free(t);
}

#define GER_RULES(name)                                                                                                \
  void RULE(name, _jvp)(const int *m, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx,             \
                        const SCALAR *y, const int *incy, SCALAR *a, const int *lda, const SCALAR *salpha,             \
                        const SCALAR *sx, const SCALAR *sy, SCALAR *sa) {                                              \
    if (sa && sx) BLAS(name)(m, n, alpha, sx, incx, y, incy, sa, lda);                                                 \
    if (sa && sy) BLAS(name)(m, n, alpha, x, incx, sy, incy, sa, lda);                                                 \
    if (sa && salpha) BLAS(name)(m, n, salpha, x, incx, y, incy, sa, lda);                                             \
    BLAS(name)(m, n, alpha, x, incx, y, incy, a, lda);                                                                 \
  }                                                                                                                    \
  void *RULE(name, _forward)(const int *m, const int *n, const SCALAR *alpha, const SCALAR *x, const int *incx,        \
                             const SCALAR *y, const int *incy, SCALAR *a, const int *lda, SCALAR *salpha, SCALAR *sx,  \
                             SCALAR *sy, SCALAR *sa, long stable, void *arena) {                                       \
    void *f = OF(new_ger_frame)(m, n, alpha, x, incx, y, incy, lda, salpha, sx, sy, sa, stable, arena);                \
    BLAS(name)(m, n, alpha, x, incx, y, incy, a, lda);                                                                 \
    return f;                                                                                                          \
  }

GER_RULES(geru)
GER_RULES(gerc)

#undef GER_RULES

void RULE(geru, _reverse)(void *frame) {
  struct OF(ger_frame) *f = frame;
  if (!f->sa) return;
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha || f->sx) {
    int incy = f->kept_incy;
    const SCALAR *y = OF(conjugate_of_vector)(f->n, f->y, &incy);
    if (f->salpha) OF(add_ger_alpha)(f, y, incy);
    if (f->sx) OF(add_matrix_vector)('N', f->m, f->n, alpha, f->sa, f->lda, y, incy, f->sx, f->incx);
    OF(release)(y);
  }
  if (f->sy) {
    int incx = f->kept_incx;
    const SCALAR *x = OF(conjugate_of_vector)(f->m, f->x, &incx);
    OF(add_matrix_vector)('T', f->m, f->n, alpha, f->sa, f->lda, x, incx, f->sy, f->incy);
    OF(release)(x);
  }
}

void RULE(gerc, _reverse)(void *frame) {
  struct OF(ger_frame) *f = frame;
  if (!f->sa) return;
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha) OF(add_ger_alpha)(f, f->y, f->kept_incy);
  if (f->sx) OF(add_matrix_vector)('N', f->m, f->n, alpha, f->sa, f->lda, f->y, f->kept_incy, f->sx, f->incx);
  if (f->sy) OF(add_matrix_vector)('C', f->m, f->n, f->alpha, f->sa, f->lda, f->x, f->kept_incx, f->sy, f->incy);
}

/* The triangle of abar grows by that of t, a Hermitian matrix m + m^H, where m is what a full matrix would get. */
static void OF(add_hermitian)(char uplo, int n, const SCALAR *t, int ldt, SCALAR *abar, int lda) {
  OF(add_part)(uplo, 1, n, n, 1, t, ldt, abar, lda);
  for (int i = 0; i < n; i++) abar[i + (index_t)i * lda] += __real__ t[i + (index_t)i * ldt] / 2;
}

/* A new copy of a triangle with a real diagonal: the part of a cotangent that counts. */
static SCALAR *OF(new_hermitian_copy)(char uplo, int n, const SCALAR *a, int lda) {
  int ld = je_at_least_one(n);
  SCALAR *copy = OF(new)((index_t)ld * n);
  OF(copy_part)(uplo, n, n, a, lda, copy, ld);
  for (int i = 0; i < n; i++) copy[i + (index_t)i * ld] = __real__ copy[i + (index_t)i * ld];
  return copy;
}

/* y = alpha H x + beta y:  xbar += conj(alpha) H G, Hbar from conj(alpha) G x^H, alphabar += <H x, G>,
   betabar += <y, G>, ybar = conj(beta) G */

void RULE(hemv, _jvp)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda,
                      const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y, const int *incy,
                      const SCALAR *salpha, const SCALAR *sa, const SCALAR *sx, const SCALAR *sbeta, SCALAR *sy) {
  if (sy) {
    if (sa)
      BLAS(hemv)(uplo, n, alpha, sa, lda, x, incx, beta, sy, incy);
    else
      OF(scale)(*n, *beta, sy, *incy);
    if (sx) BLAS(hemv)(uplo, n, alpha, a, lda, sx, incx, &OF(one), sy, incy);
    if (salpha) BLAS(hemv)(uplo, n, salpha, a, lda, x, incx, &OF(one), sy, incy);
    if (sbeta && (*beta != 0 || *sbeta != 0)) BLAS(axpy)(n, sbeta, y, incy, sy, incy);
  }
  BLAS(hemv)(uplo, n, alpha, a, lda, x, incx, beta, y, incy);
}

void *RULE(hemv, _forward)(const char *uplo, const int *n, const SCALAR *alpha, const SCALAR *a, const int *lda,
                           const SCALAR *x, const int *incx, const SCALAR *beta, SCALAR *y, const int *incy,
                           SCALAR *salpha, SCALAR *sa, SCALAR *sx, SCALAR *sbeta, SCALAR *sy, long stable,
                           void *arena) {
  struct OF(gemv_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->op = je_upper(uplo), f->m = f->n = *n, f->lda = f->kept_lda = *lda, f->alpha = *alpha, f->beta = *beta;
  f->incx = f->kept_incx = *incx, f->incy = f->kept_incy = *incy;
  f->salpha = salpha, f->sa = sa, f->sx = sx, f->sbeta = sbeta, f->sy = sy, f->a = a, f->x = x, f->y = y;
  if (sy) {
    if (sx || salpha) f->a = OF(keep_part)(arena, je_is_stable(stable, 1), f->op, *n, *n, a, &f->kept_lda);
    if (sa || salpha) f->x = OF(keep_vector)(arena, je_is_stable(stable, 2), *n, x, &f->kept_incx);
    if (sbeta) f->y = OF(keep_vector)(arena, 0, *n, y, &f->kept_incy);
  }
  BLAS(hemv)(uplo, n, alpha, a, lda, x, incx, beta, y, incy);
  return f;
}

void RULE(hemv, _reverse)(void *frame) {
  struct OF(gemv_frame) *f = frame;
  if (!f->sy) return;
  int n = f->n, ld = je_at_least_one(n);
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha) {
    SCALAR *t = OF(new)(n);
    BLAS(hemv)(&f->op, &n, &OF(one), f->a, &f->kept_lda, f->x, &f->kept_incx, &OF(zero), t, &je_one_int);
    *f->salpha += OF(inner)(n, t, 1, f->sy, f->incy);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner)(n, f->y, f->kept_incy, f->sy, f->incy);
  if (f->sa) {
    SCALAR *t = OF(new)((index_t)ld * n), *g = OF(new)(n), *x = OF(new)(n);
    OF(fill_part)('A', 0, n, n, 0, t, ld);
    OF(pack)(n, f->sy, f->incy, g);
    OF(pack)(n, f->x, f->kept_incx, x);
    BLAS(her2k)(&f->op, &je_as_it_is, &n, &je_one_int, &alpha, g, &ld, x, &ld, &OF(real_one), t, &ld);
    OF(add_hermitian)(f->op, n, t, ld, f->sa, f->lda);
    free(g);
    free(x);
    free(t);
  }
  if (f->sx) BLAS(hemv)(&f->op, &n, &alpha, f->a, &f->kept_lda, f->sy, &f->incy, &OF(one), f->sx, &f->incx);
  OF(scale)(n, CONJ(f->beta), f->sy, f->incy);
}

/* C = alpha H B + beta C or alpha B H + beta C:  Bbar += conj(alpha) H G or conj(alpha) G H, Hbar from
   conj(alpha) G B^H or conj(alpha) B^H G, alphabar += <H B, G>, betabar += <C, G>, Cbar = conj(beta) G */

void RULE(hemm, _jvp)(const char *side, const char *uplo, const int *m, const int *n, const SCALAR *alpha,
                      const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta, SCALAR *c,
                      const int *ldc, const SCALAR *salpha, const SCALAR *sa, const SCALAR *sb, const SCALAR *sbeta,
                      SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(hemm)(side, uplo, m, n, alpha, sa, lda, b, ldb, beta, sc, ldc);
    else
      OF(scale_part)('A', *m, *n, *beta, sc, *ldc);
    if (sb) BLAS(hemm)(side, uplo, m, n, alpha, a, lda, sb, ldb, &OF(one), sc, ldc);
    if (salpha) BLAS(hemm)(side, uplo, m, n, salpha, a, lda, b, ldb, &OF(one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)('A', 0, *m, *n, *sbeta, c, *ldc, sc, *ldc);
  }
  BLAS(hemm)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}

void *RULE(hemm, _forward)(const char *side, const char *uplo, const int *m, const int *n, const SCALAR *alpha,
                           const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const SCALAR *beta,
                           SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa, SCALAR *sb, SCALAR *sbeta, SCALAR *sc,
                           long stable, void *arena) {
  struct OF(matrix_frame) *f = OF(new_symm_frame)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, salpha, sa, sb,
                                                  sbeta, sc, stable, arena);
  BLAS(hemm)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
  return f;
}

void RULE(hemm, _reverse)(void *frame) {
  struct OF(matrix_frame) *f = frame;
  if (!f->sc) return;
  int m = f->m, n = f->n, left = f->side == 'L', order = left ? m : n, inner = left ? n : m;
  SCALAR alpha = CONJ(f->alpha);
  if (f->salpha) {
    int ld = je_at_least_one(m);
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(hemm)(&f->side, &f->uplo, &m, &n, &OF(one), f->a, &f->kept_lda, f->b, &f->kept_ldb, &OF(zero), t, &ld);
    *f->salpha += OF(inner_part)('A', m, n, t, ld, f->sc, f->ldc);
    free(t);
  }
  if (f->sbeta) *f->sbeta += OF(inner_part)('A', m, n, f->c, f->kept_ldc, f->sc, f->ldc);
  if (f->sa) {
    int ld = je_at_least_one(order);
    SCALAR *t = OF(new)((index_t)ld * order);
    OF(fill_part)('A', 0, order, order, 0, t, ld);
    if (left)
      BLAS(her2k)(&f->uplo, &je_as_it_is, &order, &inner, &alpha, f->sc, &f->ldc, f->b, &f->kept_ldb, &OF(real_one), t,
                  &ld);
    else
      BLAS(her2k)(&f->uplo, &je_turned, &order, &inner, &alpha, f->b, &f->kept_ldb, f->sc, &f->ldc, &OF(real_one), t,
                  &ld);
    OF(add_hermitian)(f->uplo, order, t, ld, f->sa, f->lda);
    free(t);
  }
  if (f->sb)
    BLAS(hemm)(&f->side, &f->uplo, &m, &n, &alpha, f->a, &f->kept_lda, f->sc, &f->ldc, &OF(one), f->sb, &f->ldb);
  OF(scale_part)('A', m, n, CONJ(f->beta), f->sc, f->ldc);
}

/* C = alpha A A^H + beta C or alpha A^H A + beta C, a triangle of it, with real alpha and beta. With H the Hermitian
   matrix that the triangle of G stands for and D its diagonal: Abar += alpha (H + D) A or alpha A (H + D), alphabar +=
   Re <A A^H, G>, betabar += Re <C, G>, Cbar = beta G The imaginary part of the diagonal of C is zero before, by
   definition, and afterwards. */

struct OF(hermitian_frame) {
  int n, k, lda, kept_lda, ldb, kept_ldb, ldc, kept_ldc;
  SCALAR alpha;
  REAL beta;
  const SCALAR *a, *b, *c;
  void *salpha;
  SCALAR *sa, *sb, *sc;
  REAL *sbeta;
  char uplo, op;
};

/* bbar += alpha (H + D) a, n x k, or alpha a (H + D), k x n; g has a real diagonal. */
static void OF(add_hermitian_product)(char uplo, char op, int n, int k, SCALAR alpha, const SCALAR *g, int ldg,
                                      const SCALAR *a, int lda, SCALAR *bbar, int ldb) {
  if (op == 'N')
    BLAS(hemm)(&je_left, &uplo, &n, &k, &alpha, g, &ldg, a, &lda, &OF(one), bbar, &ldb);
  else
    BLAS(hemm)(&je_right, &uplo, &k, &n, &alpha, g, &ldg, a, &lda, &OF(one), bbar, &ldb);
  for (int i = 0; i < n; i++) {
    SCALAR factor = alpha * g[i + (index_t)i * ldg];
    if (op == 'N')
      BLAS(axpy)(&k, &factor, a + i, &lda, bbar + i, &ldb);
    else
      BLAS(axpy)(&k, &factor, a + (index_t)i * lda, &je_one_int, bbar + (index_t)i * ldb, &je_one_int);
  }
}

static void OF(make_diagonal_real)(int n, SCALAR *a, int lda) {
  for (int i = 0; i < n; i++) a[i + (index_t)i * lda] = __real__ a[i + (index_t)i * lda];
}

static struct OF(hermitian_frame) *
    OF(new_hermitian_frame)(const char *uplo, const char *trans, const int *n, const int *k, SCALAR alpha,
                            const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const REAL *beta,
                            const SCALAR *c, const int *ldc, void *salpha, SCALAR *sa, SCALAR *sb, REAL *sbeta,
                            SCALAR *sc, int keeps_a, int a_stays, int keeps_b, int b_stays, void *arena) {
  struct OF(hermitian_frame) *f = je_arena_allocate(arena, sizeof *f);
  f->uplo = je_upper(uplo), f->op = OF(operation)(trans), f->n = *n, f->k = *k, f->alpha = alpha, f->beta = *beta;
  f->lda = f->kept_lda = *lda, f->ldb = f->kept_ldb = *ldb, f->ldc = f->kept_ldc = *ldc, f->a = a, f->b = b, f->c = c;
  f->salpha = salpha, f->sa = sa, f->sb = sb, f->sbeta = sbeta, f->sc = sc;
  if (sc) {
    int rows = f->op == 'N' ? *n : *k, columns = f->op == 'N' ? *k : *n;
    if (keeps_a) f->a = OF(keep_part)(arena, a_stays, 'A', rows, columns, a, &f->kept_lda);
    if (keeps_b) f->b = OF(keep_part)(arena, b_stays, 'A', rows, columns, b, &f->kept_ldb);
    if (sbeta) f->c = OF(keep_part)(arena, 0, f->uplo, *n, *n, c, &f->kept_ldc);
  }
  return f;
}

/* The cotangent of the old C, and betabar; g has a real diagonal. */
static void OF(finish_hermitian)(struct OF(hermitian_frame) * f, const SCALAR *g, int ld) {
  if (f->sbeta) *f->sbeta += __real__ OF(inner_part)(f->uplo, f->n, f->n, f->c, f->kept_ldc, g, ld);
  OF(scale_part)(f->uplo, f->n, f->n, f->beta, f->sc, f->ldc);
  OF(make_diagonal_real)(f->n, f->sc, f->ldc);
}

void RULE(herk, _jvp)(const char *uplo, const char *trans, const int *n, const int *k, const REAL *alpha,
                      const SCALAR *a, const int *lda, const REAL *beta, SCALAR *c, const int *ldc, const REAL *salpha,
                      const SCALAR *sa, const REAL *sbeta, SCALAR *sc) {
  if (sc) {
    SCALAR factor = *alpha;
    if (sa)
      BLAS(her2k)(uplo, trans, n, k, &factor, sa, lda, a, lda, beta, sc, ldc);
    else
      OF(scale_part)(je_upper(uplo), *n, *n, *beta, sc, *ldc);
    if (salpha) BLAS(herk)(uplo, trans, n, k, salpha, a, lda, &OF(real_one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)(je_upper(uplo), 0, *n, *n, *sbeta, c, *ldc, sc, *ldc);
    OF(make_diagonal_real)(*n, sc, *ldc);
  }
  BLAS(herk)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
}

void *RULE(herk, _forward)(const char *uplo, const char *trans, const int *n, const int *k, const REAL *alpha,
                           const SCALAR *a, const int *lda, const REAL *beta, SCALAR *c, const int *ldc, REAL *salpha,
                           SCALAR *sa, REAL *sbeta, SCALAR *sc, long stable, void *arena) {
  void *f = OF(new_hermitian_frame)(uplo, trans, n, k, *alpha, a, lda, a, lda, beta, c, ldc, salpha, sa, 0, sbeta, sc,
                                    sa || salpha, je_is_stable(stable, 1), 0, 0, arena);
  BLAS(herk)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
  return f;
}

void RULE(herk, _reverse)(void *frame) {
  struct OF(hermitian_frame) *f = frame;
  if (!f->sc) return;
  int n = f->n, k = f->k, ld = je_at_least_one(n);
  SCALAR *g = OF(new_hermitian_copy)(f->uplo, n, f->sc, f->ldc);
  if (f->salpha) {
    REAL zero = 0, *salpha = f->salpha;
    SCALAR *t = OF(new)((index_t)ld * n);
    BLAS(herk)(&f->uplo, &f->op, &n, &k, &OF(real_one), f->a, &f->kept_lda, &zero, t, &ld);
    *salpha += __real__ OF(inner_part)(f->uplo, n, n, t, ld, g, ld);
    free(t);
  }
  if (f->sa) OF(add_hermitian_product)(f->uplo, f->op, n, k, f->alpha, g, ld, f->a, f->kept_lda, f->sa, f->lda);
  OF(finish_hermitian)(f, g, ld);
  free(g);
}

/* C = alpha A B^H + conj(alpha) B A^H + beta C:  Abar += conj(alpha) (H + D) B, Bbar += alpha (H + D) A
   C = alpha A^H B + conj(alpha) B^H A + beta C:  Abar += alpha B (H + D), Bbar += conj(alpha) A (H + D)
   alphabar += <P, G> + conj <P^H, G> over the triangle, P = A B^H or A^H B */

void RULE(her2k, _jvp)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                       const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const REAL *beta, SCALAR *c,
                       const int *ldc, const SCALAR *salpha, const SCALAR *sa, const SCALAR *sb, const REAL *sbeta,
                       SCALAR *sc) {
  if (sc) {
    if (sa)
      BLAS(her2k)(uplo, trans, n, k, alpha, sa, lda, b, ldb, beta, sc, ldc);
    else
      OF(scale_part)(je_upper(uplo), *n, *n, *beta, sc, *ldc);
    if (sb) BLAS(her2k)(uplo, trans, n, k, alpha, a, lda, sb, ldb, &OF(real_one), sc, ldc);
    if (salpha) BLAS(her2k)(uplo, trans, n, k, salpha, a, lda, b, ldb, &OF(real_one), sc, ldc);
    if (sbeta && (*beta != 0 || *sbeta != 0)) OF(add_part)(je_upper(uplo), 0, *n, *n, *sbeta, c, *ldc, sc, *ldc);
    OF(make_diagonal_real)(*n, sc, *ldc);
  }
  BLAS(her2k)(uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void *RULE(her2k, _forward)(const char *uplo, const char *trans, const int *n, const int *k, const SCALAR *alpha,
                            const SCALAR *a, const int *lda, const SCALAR *b, const int *ldb, const REAL *beta,
                            SCALAR *c, const int *ldc, SCALAR *salpha, SCALAR *sa, SCALAR *sb, REAL *sbeta, SCALAR *sc,
                            long stable, void *arena) {
  void *f =
      OF(new_hermitian_frame)(uplo, trans, n, k, *alpha, a, lda, b, ldb, beta, c, ldc, salpha, sa, sb, sbeta, sc,
                              sb || salpha, je_is_stable(stable, 1), sa || salpha, je_is_stable(stable, 2), arena);
  BLAS(her2k)(uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  return f;
}

void RULE(her2k, _reverse)(void *frame) {
  struct OF(hermitian_frame) *f = frame;
  if (!f->sc) return;
  int n = f->n, k = f->k, ld = je_at_least_one(n);
  char first = f->op == 'N' ? 'N' : 'C', second = f->op == 'N' ? 'C' : 'N';
  SCALAR *g = OF(new_hermitian_copy)(f->uplo, n, f->sc, f->ldc);
  SCALAR alpha = f->op == 'N' ? CONJ(f->alpha) : f->alpha;
  if (f->salpha) {
    SCALAR *salpha = f->salpha, *t = OF(new)((index_t)ld * n), sum;
    BLAS(gemm)(&first, &second, &n, &n, &k, &OF(one), f->a, &f->kept_lda, f->b, &f->kept_ldb, &OF(zero), t, &ld);
    sum = OF(inner_part)(f->uplo, n, n, t, ld, g, ld);
    BLAS(gemm)(&first, &second, &n, &n, &k, &OF(one), f->b, &f->kept_ldb, f->a, &f->kept_lda, &OF(zero), t, &ld);
    SCALAR other = OF(inner_part)(f->uplo, n, n, t, ld, g, ld);
    *salpha += sum + CONJ(other);
    free(t);
  }
  if (f->sa) OF(add_hermitian_product)(f->uplo, f->op, n, k, alpha, g, ld, f->b, f->kept_ldb, f->sa, f->lda);
  if (f->sb) OF(add_hermitian_product)(f->uplo, f->op, n, k, CONJ(alpha), g, ld, f->a, f->kept_lda, f->sb, f->ldb);
  OF(finish_hermitian)(f, g, ld);
  free(g);
}

#else
#define NORM2 BLAS(nrm2)
#endif
