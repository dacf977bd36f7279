/* Eigenvalues and vectors of general matrices, in complex numbers; of real matrices a pair of columns is one vector and
   its conjugate. A V = V diag(w), with F(i, j) = 1 / (w(j) - w(i)) off the diagonal and 0 on it:
     P = V^-1 dA V, dw = diag(P), dV = V (F o P) + V diag(c)
     Pbar = diag(wbar) + conj(F) o V^H Vbar, Abar = V^-H Pbar V^H
   (C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann, R. Haeb-Umbach, On the computation of complex-valued gradients
   with application to statistically optimum beamforming, 2017; M. B. Giles, 2008.) A vector has size one, and its
   largest component k is real: c = -Re(v^H dv) - i Im(dv(k)) / v(k)       Vbar -= Re(vbar^H v) v - i Im(vbar^H v) /
   v(k) e(k) Left vectors are the right ones of A^H, and their values conj(w). Where two values are equal, vectors have
   no derivative: it is infinite or no number; nor have values that have one vector between them. What is left of the
   matrix has none. */

#ifdef COMPLEX
#define PAIR SCALAR
#define PAIR_BLAS(name) BLAS(name)
extern void BLAS(geev)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, const int *,
                       SCALAR *, const int *, SCALAR *, const int *, REAL *, int *);
#else
#define PAIR _Complex REAL
#ifdef SINGLE
#define PAIR_BLAS(name) JOIN3(c, name, _)
#else
#define PAIR_BLAS(name) JOIN3(z, name, _)
#endif
extern void BLAS(geev)(const char *, const char *, const int *, SCALAR *, const int *, SCALAR *, SCALAR *, SCALAR *,
                       const int *, SCALAR *, const int *, SCALAR *, const int *, int *);
extern void PAIR_BLAS(gemm)(const char *, const char *, const int *, const int *, const int *, const PAIR *,
                            const PAIR *, const int *, const PAIR *, const int *, const PAIR *, PAIR *, const int *);
#endif
extern void PAIR_BLAS(gesv)(const int *, const int *, PAIR *, const int *, int *, PAIR *, const int *, int *);

static PAIR *OF(new_pairs)(index_t count) { return malloc((unsigned long)(count > 0 ? count : 1) * sizeof(PAIR)); }

/* opx(x) opy(y) of square matrices without gaps. */
static PAIR *OF(pair_product)(char opx, char opy, int n, const PAIR *x, const PAIR *y) {
  PAIR *z = OF(new_pairs)((index_t)n * n), one = 1, zero = 0;
  PAIR_BLAS(gemm)(&opx, &opy, &n, &n, &n, &one, x, &n, y, &n, &zero, z, &n);
  return z;
}

static PAIR OF(turned_over)(PAIR x) { return __builtin_complex(__real__(x), -__imag__(x)); }

/* x^-1 y, or x^-H y, in the place of y. */
static void OF(pair_solve)(int adjoint, int n, const PAIR *x, PAIR *y) {
  PAIR *copy = OF(new_pairs)((index_t)n * n);
  int *pivots = malloc((unsigned long)n * sizeof(int)), ignored;
  for (index_t j = 0; j < n; j++)
    for (index_t i = 0; i < n; i++) copy[i + j * n] = adjoint ? OF(turned_over)(x[j + i * n]) : x[i + j * n];
  PAIR_BLAS(gesv)(&n, &n, copy, &n, pivots, y, &n, &ignored);
  free(pivots);
  free(copy);
}

/* F o p, or conj(F) o p; of left vectors F is of the conjugate values. The diagonal stays. */
static void OF(over_gaps)(int n, const PAIR *w, int conjugate, PAIR *p) {
  for (index_t j = 0; j < n; j++)
    for (index_t i = 0; i < n; i++) {
      PAIR gap = w[j] - w[i];
      if (i != j) p[i + j * n] /= conjugate ? OF(turned_over)(gap) : gap;
    }
}

/* Of those that are real: of several that are equally large, rounding may make another one larger than the one that
   LAPACK made real. */
static int OF(largest_component)(int n, const PAIR *v) {
  int k = 0;
  REAL most = -1;
  for (int i = 0; i < n; i++) {
    REAL size = __real__(v[i]) * __real__(v[i]) + __imag__(v[i]) * __imag__(v[i]);
    if (size > most && __imag__(v[i]) == 0) most = size, k = i;
  }
  return k;
}

static PAIR OF(pair_inner)(int n, const PAIR *x, const PAIR *y) {
  PAIR sum = 0;
  for (int i = 0; i < n; i++) sum += OF(turned_over)(x[i]) * y[i];
  return sum;
}

/* The tangents of all vectors of a matrix, new: of dA, or of dA^H for left ones; `dw`, where there is one, becomes that
   of the values. */
static PAIR *OF(new_vector_tangents)(int n, const PAIR *v, const PAIR *w, int left, const PAIR *da, PAIR *dw) {
  PAIR *p = OF(pair_product)(left ? 'C' : 'N', 'N', n, da, v);
  OF(pair_solve)(0, n, v, p);
  for (index_t j = 0; dw && j < n; j++) dw[j] = p[j + j * n];
  for (index_t j = 0; j < n; j++) p[j + j * n] = 0;
  OF(over_gaps)(n, w, left, p);
  PAIR *dv = OF(pair_product)('N', 'N', n, v, p);
  free(p);
  for (index_t j = 0; j < n; j++) {
    const PAIR *x = v + j * n;
    PAIR *dx = dv + j * n;
    int k = OF(largest_component)(n, x);
    PAIR c = __builtin_complex(-__real__(OF(pair_inner)(n, x, dx)), -__imag__(dx[k]) / __real__(x[k]));
    for (int i = 0; i < n; i++) dx[i] += c * x[i];
  }
  return dv;
}

/* What vectors and values give to Abar, new; `vbar`, which is spent, and `wbar` may be NULL. */
static PAIR *OF(new_vector_cotangents)(int n, const PAIR *v, const PAIR *w, int left, PAIR *vbar, const PAIR *wbar) {
  PAIR *p;
  for (index_t j = 0; vbar && j < n; j++) {
    const PAIR *x = v + j * n;
    PAIR *xbar = vbar + j * n, size = OF(pair_inner)(n, xbar, x);
    int k = OF(largest_component)(n, x);
    for (int i = 0; i < n; i++) xbar[i] -= __real__(size) * x[i];
    xbar[k] += __builtin_complex((REAL)0, __imag__(size) / __real__(x[k]));
  }
  if (vbar) {
    p = OF(pair_product)('C', 'N', n, v, vbar);
    OF(over_gaps)(n, w, !left, p);
  } else {
    p = OF(new_pairs)((index_t)n * n);
  }
  for (index_t j = 0; j < n; j++)
    for (index_t i = 0; i < n; i++) {
      PAIR beside = vbar ? p[i + j * n] : 0;
      p[i + j * n] = i != j ? beside : wbar ? wbar[j] : 0;
    }
  PAIR *x = OF(pair_product)('N', 'C', n, p, v);
  OF(pair_solve)(1, n, v, x);
  free(p);
  if (!left) return x;
  for (index_t j = 0; j < n; j++) /* of A^H */
    for (index_t i = 0; i <= j; i++) {
      PAIR kept = OF(turned_over)(x[i + j * n]);
      x[i + j * n] = OF(turned_over)(x[j + i * n]), x[j + i * n] = kept;
    }
  return x;
}

/* Vectors as complex numbers, and back: of a real matrix, where w(j) is no real number, columns j and j + 1 are the
   real and the imaginary part of a vector, and the next vector is its conjugate: `once`, that is left out. */
static void OF(to_pairs)(int n, const PAIR *w, const SCALAR *v, int ldv, int once, PAIR *to) {
  for (index_t j = 0; j < n; j++)
    for (index_t i = 0; i < n; i++) {
      const SCALAR *at = v + i + j * ldv;
#ifdef COMPLEX
      (void)w, (void)once;
      to[i + j * n] = *at;
#else
      if (__imag__(w[j]) > 0)
        to[i + j * n] = __builtin_complex(at[0], at[ldv]);
      else if (__imag__(w[j]) < 0)
        to[i + j * n] = once ? 0 : __builtin_complex(at[-(index_t)ldv], -at[0]);
      else
        to[i + j * n] = at[0];
#endif
    }
}

static void OF(from_pairs)(int n, const PAIR *w, const PAIR *from, SCALAR *v, int ldv) {
  for (index_t j = 0; j < n; j++)
    for (index_t i = 0; i < n; i++) {
#ifdef COMPLEX
      (void)w;
      v[i + j * ldv] = from[i + j * n];
#else
      int is_second = __imag__(w[j]) < 0;
      v[i + j * ldv] = is_second ? __imag__(from[i + (j - 1) * n]) : __real__(from[i + j * n]);
#endif
    }
}

#ifdef COMPLEX
#define VALUES SCALAR *w
#define VALUE_ARGUMENTS w
#define VALUE_SHADOWS SCALAR *sw
#define IMAGINARY(x) ((SCALAR *)0)
#else
#define VALUES SCALAR *w, SCALAR *wi
#define VALUE_ARGUMENTS w, wi
#define VALUE_SHADOWS SCALAR *sw, SCALAR *swi
#define IMAGINARY(x) x
#endif

/* All values and vectors of a matrix without gaps, which is destroyed, in the order of those that a call has given. */
static void OF(all_pairs)(int n, SCALAR *a, const SCALAR *given, const SCALAR *given_wi, PAIR *all, PAIR *left,
                          PAIR *right, int *info) {
  char wanted = left ? 'V' : 'N';
  int ask = -1;
  SCALAR size, *w = OF(new)(n), *vl = OF(new)((index_t)n * n), *vr = OF(new)((index_t)n * n);
#ifdef COMPLEX
  REAL *rwork = OF(new_reals)(2 * n);
#else
  SCALAR *wi = OF(new)(n);
#endif
  BLAS(geev)(&wanted, &je_vectors, &n, a, &n, VALUE_ARGUMENTS, vl, &n, vr, &n, &size, &ask ROOM_ARGUMENT, info);
  int room = (int)REAL_PART(size);
  SCALAR *work = OF(new)(room);
  BLAS(geev)(&wanted, &je_vectors, &n, a, &n, VALUE_ARGUMENTS, vl, &n, vr, &n, work, &room ROOM_ARGUMENT, info);
  free(work);
#ifdef COMPLEX
  (void)given_wi;
  for (int i = 0; i < n; i++) all[i] = w[i];
  free(rwork);
#else
  for (int i = 0; i < n; i++) all[i] = __builtin_complex(w[i], wi[i]);
  free(wi);
#endif
  OF(to_pairs)(n, all, vr, n, 0, right);
  if (left) OF(to_pairs)(n, all, vl, n, 0, left);
  for (index_t j = 0; j < n; j++) {
    index_t best = j;
    REAL least = (REAL)__builtin_inf();
    for (int i = (int)j; i < n; i++) {
#ifdef COMPLEX
      PAIR apart = all[i] - given[j];
#else
      PAIR apart = all[i] - __builtin_complex(given[j], given_wi[j]);
#endif
      REAL distance = __real__(apart) * __real__(apart) + __imag__(apart) * __imag__(apart);
      if (distance < least) least = distance, best = i;
    }
    for (index_t i = 0; best != j && i < n; i++) {
      PAIR kept = right[i + j * n];
      right[i + j * n] = right[i + best * n], right[i + best * n] = kept;
      kept = left ? left[i + j * n] : 0;
      if (left) left[i + j * n] = left[i + best * n], left[i + best * n] = kept;
    }
    PAIR kept = all[j];
    all[j] = all[best], all[best] = kept;
  }
  free(vr);
  free(vl);
  free(w);
}

struct OF(general) {
  int n, lda, ldvl, ldvr, failed;
  const PAIR *w, *left, *right;
  SCALAR *sa, *sw, *swi, *svl, *svr, *swork;
  REAL *srwork;
};

static void OF(fill_general)(struct OF(general) * f, SCALAR value) {
  if (f->sw) OF(fill)(f->n, value, f->sw, 1);
  if (f->swi) OF(fill)(f->n, value, f->swi, 1);
  if (f->svl) OF(fill_part)('A', 0, f->n, f->n, value, f->svl, f->ldvl);
  if (f->svr) OF(fill_part)('A', 0, f->n, f->n, value, f->svr, f->ldvr);
}

static void OF(general_tangent)(struct OF(general) * f) {
  int n = f->n;
  SCALAR none = (SCALAR)__builtin_nan("");
  OF(fill_general)(f, f->sa && f->failed ? none : 0);
  if (!f->sa || n < 1) return;
  if (!f->failed) {
    PAIR *da = OF(new_pairs)((index_t)n * n), *dw = OF(new_pairs)(n);
    for (index_t j = 0; j < n; j++)
      for (index_t i = 0; i < n; i++) da[i + j * n] = f->sa[i + j * f->lda];
    PAIR *dright = OF(new_vector_tangents)(n, f->right, f->w, 0, da, dw);
    if (f->svr) OF(from_pairs)(n, f->w, dright, f->svr, f->ldvr);
    if (f->svl) {
      PAIR *dleft = OF(new_vector_tangents)(n, f->left, f->w, 1, da, 0);
      OF(from_pairs)(n, f->w, dleft, f->svl, f->ldvl);
      free(dleft);
    }
    for (int j = 0; j < n; j++) {
#ifdef COMPLEX
      if (f->sw) f->sw[j] = dw[j];
#else
      if (f->sw) f->sw[j] = __real__(dw[j]);
      if (f->swi) f->swi[j] = __imag__(dw[j]);
#endif
    }
    free(dright);
    free(dw);
    free(da);
  }
  OF(fill_part)('A', 0, n, n, none, f->sa, f->lda);
}

static void OF(general_cotangent)(struct OF(general) * f) {
  int n = f->n;
  OF(forget_work)(f->swork, f->srwork);
  if (f->sa && n > 0) {
    OF(spoil)('A', n, f->sa, f->lda);
    if (f->failed) OF(fill_part)('A', 0, n, n, (SCALAR)__builtin_nan(""), f->sa, f->lda);
    PAIR *wbar = OF(new_pairs)(n);
    for (int j = 0; j < n; j++) {
#ifdef COMPLEX
      wbar[j] = f->sw ? f->sw[j] : 0;
#else
      wbar[j] = __builtin_complex(f->sw ? f->sw[j] : 0, f->swi ? f->swi[j] : 0);
#endif
    }
    for (int left = 0; !f->failed && left < (f->svl ? 2 : 1); left++) {
      SCALAR *shadow = left ? f->svl : f->svr;
      PAIR *vbar = shadow ? OF(new_pairs)((index_t)n * n) : 0;
      if (vbar) OF(to_pairs)(n, f->w, shadow, left ? f->ldvl : f->ldvr, 1, vbar);
      PAIR *x = OF(new_vector_cotangents)(n, left ? f->left : f->right, f->w, left, vbar, left ? 0 : wbar);
      for (index_t j = 0; j < n; j++)
        for (index_t i = 0; i < n; i++) {
#ifdef COMPLEX
          f->sa[i + j * f->lda] += x[i + j * n];
#else
          f->sa[i + j * f->lda] += __real__(x[i + j * n]);
#endif
        }
      free(x);
      free(vbar);
    }
    free(wbar);
  }
  OF(fill_general)(f, 0);
}

/* The rules. */
#define GENERAL                                                                                                        \
  const char *jobvl, const char *jobvr, const int *n, SCALAR *a, const int *lda, VALUES, SCALAR *vl, const int *ldvl,  \
      SCALAR *vr, const int *ldvr, SCALAR *work, const int *lwork ROOM, int *info, SCALAR *sa, VALUE_SHADOWS,          \
      SCALAR *svl, SCALAR *svr, SCALAR *swork RWORK
#define CALL_GENERAL                                                                                                   \
  BLAS(geev)(jobvl, jobvr, n, a, lda, VALUE_ARGUMENTS, vl, ldvl, vr, ldvr, work, lwork ROOM_ARGUMENT, info)

static void OF(general_of)(struct OF(general) * f, char jobvl, char jobvr, int n, int lda, int ldvl, int ldvr,
                           SCALAR *sa, SCALAR *sw, SCALAR *swi, SCALAR *svl, SCALAR *svr) {
  f->n = n, f->lda = lda, f->ldvl = ldvl, f->ldvr = ldvr, f->failed = 0, f->sa = sa, f->sw = sw, f->swi = swi;
  f->svl = jobvl == 'V' ? svl : 0, f->svr = jobvr == 'V' ? svr : 0;
}

void RULE(geev, _jvp)(GENERAL) {
  struct OF(general) f;
  OF(general_of)(&f, je_upper(jobvl), je_upper(jobvr), *n, *lda, *ldvl, *ldvr, sa, sw, IMAGINARY(swi), svl, svr);
  int is_asked = *lwork == -1, size = *n;
  SCALAR *old = OF(new_copy)('A', size, size, a, *lda);
  PAIR *all = OF(new_pairs)(size), *right = OF(new_pairs)((index_t)size * size);
  PAIR *left = f.svl ? OF(new_pairs)((index_t)size * size) : 0;
  CALL_GENERAL;
  OF(forget_work)(swork, SRWORK);
  if (!is_asked) {
    f.failed = *info;
    if (sa && !f.failed && size > 0) OF(all_pairs)(size, old, w, IMAGINARY(wi), all, left, right, &f.failed);
    f.w = all, f.left = left, f.right = right;
    OF(general_tangent)(&f);
  }
  free(left);
  free(right);
  free(all);
  free(old);
}

void *RULE(geev, _forward)(GENERAL, long stable, void *arena) {
  struct OF(general) *f = je_arena_allocate(arena, sizeof *f);
  int size = *n, failed = 0;
  long square = (long)size * size * (long)sizeof(PAIR) + 1;
  (void)stable;
  if (*lwork == -1) sa = 0, sw = 0, svl = 0, svr = 0;
  OF(general_of)(f, je_upper(jobvl), je_upper(jobvr), size, *lda, *ldvl, *ldvr, sa, sw, IMAGINARY(swi), svl, svr);
#ifndef COMPLEX
  if (*lwork == -1) f->swi = 0;
#endif
  f->swork = swork, f->srwork = SRWORK;
  SCALAR *old = OF(new_copy)('A', size, size, a, *lda);
  CALL_GENERAL;
  if (sa) {
    PAIR *all = je_arena_allocate(arena, (long)size * (long)sizeof(PAIR) + 1),
         *right = je_arena_allocate(arena, square);
    PAIR *left = f->svl ? je_arena_allocate(arena, square) : 0;
    failed = *info;
    if (!failed && size > 0) OF(all_pairs)(size, old, w, IMAGINARY(wi), all, left, right, &failed);
    f->w = all, f->left = left, f->right = right;
  }
  f->failed = failed;
  free(old);
  return f;
}

void RULE(geev, _reverse)(void *frame) { OF(general_cotangent)(frame); }

#undef GENERAL
#undef CALL_GENERAL
#undef VALUES
#undef VALUE_ARGUMENTS
#undef VALUE_SHADOWS
#undef IMAGINARY
#undef PAIR
#undef PAIR_BLAS
