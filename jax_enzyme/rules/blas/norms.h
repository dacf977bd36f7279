/* Norms of matrices, and conditions by estimates of norms of inverses: put into kernels that call these routines, and
   differentiated as code. */

/* |x|; that of a complex number has derivative 0 at 0. */
static REAL OF(modulus)(SCALAR x) {
#ifdef COMPLEX
  REAL real = (REAL)__builtin_fabs(__real__(x)), imaginary = (REAL)__builtin_fabs(__imag__(x)),
       most = real > imaginary ? real : imaginary, least = real > imaginary ? imaginary : real,
       ratio = least / (most > 0 && most < (REAL)__builtin_inf() ? most : 1),
       smallest = sizeof(REAL) == 4 ? (REAL)0x1p-149 : (REAL)0x1p-1074;
  return most + least < smallest ? 0 : most * (REAL)__builtin_sqrt(1 + ratio * ratio);
#else
  return (REAL)__builtin_fabs(x);
#endif
}

static REAL OF(sum_of_moduli)(int n, const SCALAR *x, int step) {
#ifdef COMPLEX
  REAL sum = 0;
  for (index_t i = 0; i < n; i++) sum += OF(modulus)(x[i * step]);
  return sum;
#else
  return BLAS(asum)(&n, x, &step);
#endif
}

/* Of the largest entry, column or row, and of Frobenius, as one vector: the norm of a column is not smooth at zero,
   where that of the matrix is. */
REAL BLAS(lange)(const char *norm, const int *m, const int *n, const SCALAR *a, const int *lda, REAL *work) {
  char kind = je_upper(norm);
  int by_rows = kind == 'I', parts = by_rows ? *m : *n, size = by_rows ? *n : *m, step = by_rows ? *lda : 1;
  REAL found = 0;
  (void)work;
  if (kind == 'F' || kind == 'E') {
    int count = *m * *n;
    SCALAR *all = OF(new)(count);
    for (index_t j = 0; j < *n; j++)
      for (index_t i = 0; i < *m; i++) all[i + j * *m] = a[i + j * *lda];
    found = NORM2(&count, all, &je_one_int);
    free(all);
    return found;
  }
  for (index_t j = 0; j < parts; j++) {
    const SCALAR *part = a + j * (by_rows ? 1 : *lda);
    REAL each = 0;
    if (kind != 'M')
      each = OF(sum_of_moduli)(size, part, step);
    else
      for (index_t i = 0; i < size; i++) {
        REAL one = OF(modulus)(part[i]);
        if (one > each || one != one) each = one;
      }
    if (each > found || each != each) found = each;
  }
  return found;
}

/* Of a matrix of which a triangle is stored. */
static REAL OF(symmetric_norm)(int hermitian, const char *norm, const char *uplo, const int *n, const SCALAR *a,
                               const int *lda, REAL *work) {
  int ld = je_at_least_one(*n);
  SCALAR *whole = OF(new_copy)(je_upper(uplo), *n, *n, a, *lda);
  OF(complete)(je_upper(uplo), *n, whole, ld);
  for (index_t i = 0; !hermitian && i < *n; i++) whole[i + i * ld] = a[i + i * *lda];
  REAL found = BLAS(lange)(norm, n, n, whole, &ld, work);
  free(whole);
  return found;
}

REAL BLAS(lansy)(const char *norm, const char *uplo, const int *n, const SCALAR *a, const int *lda, REAL *work) {
  return OF(symmetric_norm)(0, norm, uplo, n, a, lda, work);
}

#ifdef COMPLEX
REAL BLAS(lanhe)(const char *norm, const char *uplo, const int *n, const SCALAR *a, const int *lda, REAL *work) {
  return OF(symmetric_norm)(1, norm, uplo, n, a, lda, work);
}
#endif

REAL BLAS(lantr)(const char *norm, const char *uplo, const char *diag, const int *m, const int *n, const SCALAR *a,
                 const int *lda, REAL *work) {
  int ld = je_at_least_one(*m);
  SCALAR *whole = OF(new)((index_t)ld * *n);
  OF(fill_part)('A', 0, *m, *n, 0, whole, ld);
  OF(copy_part)(je_upper(uplo), *m, *n, a, *lda, whole, ld);
  for (index_t i = 0; je_upper(diag) == 'U' && i < *m && i < *n; i++) whole[i + i * ld] = 1;
  REAL found = BLAS(lange)(norm, m, n, whole, &ld, work);
  free(whole);
  return found;
}

/* op(a) x = b by factors: L and U in one matrix, without an exchange of rows, which changes no norm (G), those of
   Cholesky (L, U), or one triangle alone (T). */
struct OF(inverse) {
  char kind, part, diag;
  int n, lda;
  const SCALAR *a;
};

static void OF(apply_inverse)(const struct OF(inverse) * f, int adjoint, SCALAR *x) {
  char plain = 'N', unit = 'U', lower = 'L', upper = 'U', turned = OF(adjoint)('N'), op = adjoint ? turned : plain;
  int n = f->n;
  if (f->kind == 'T') {
    BLAS(trsv)(&f->part, &op, &f->diag, &n, f->a, &f->lda, x, &je_one_int);
  } else if (f->kind == 'G') {
    BLAS(trsv)(adjoint ? &upper : &lower, &op, adjoint ? &plain : &unit, &n, f->a, &f->lda, x, &je_one_int);
    BLAS(trsv)(adjoint ? &lower : &upper, &op, adjoint ? &unit : &plain, &n, f->a, &f->lda, x, &je_one_int);
  } else {
    BLAS(trsv)(&f->kind, f->kind == 'L' ? &plain : &turned, &plain, &n, f->a, &f->lda, x, &je_one_int);
    BLAS(trsv)(&f->kind, f->kind == 'L' ? &turned : &plain, &plain, &n, f->a, &f->lda, x, &je_one_int);
  }
}

static int OF(largest_of)(int n, const SCALAR *x) {
  int best = 0;
  for (int i = 1; i < n; i++)
    if (OF(modulus)(x[i]) > OF(modulus)(x[best])) best = i;
  return best;
}

static SCALAR OF(direction_of)(SCALAR x) {
#ifdef COMPLEX
  REAL size = OF(modulus)(x);
  return size > 0 ? x / size : 1;
#else
  return x >= 0 ? 1 : -1;
#endif
}

/* An estimate of the norm of an inverse, by its columns, or with `rows` by its rows (N. J. Higham, FORTRAN codes for
   estimating the one-norm of a real or complex matrix, with applications to condition estimation, 1988): the size of
   the solution for the vector that it comes to, of which the derivative is that. */
static REAL OF(norm_of_inverse)(const struct OF(inverse) * f, int rows) {
  int n = f->n, best = 0;
  SCALAR *x = OF(new)(n), *signs = OF(new)(n);
  REAL found;
  for (int i = 0; i < n; i++) x[i] = (SCALAR)1 / n;
  OF(apply_inverse)(f, rows, x);
  found = OF(sum_of_moduli)(n, x, 1);
  for (int step = 1; n > 1 && step <= 5; step++) {
    int same = step > 1;
    for (int i = 0; i < n; i++) {
      SCALAR sign = OF(direction_of)(x[i]);
#ifdef COMPLEX
      same = 0;
#else
      same &= step > 1 && sign == signs[i];
#endif
      signs[i] = sign;
    }
    if (same) break;
    for (int i = 0; i < n; i++) x[i] = signs[i];
    OF(apply_inverse)(f, !rows, x);
    int next = OF(largest_of)(n, x);
    if (step > 1 && OF(modulus)(x[best]) == OF(modulus)(x[next])) break;
    best = next;
    OF(fill)(n, 0, x, 1);
    x[best] = 1;
    OF(apply_inverse)(f, rows, x);
    REAL before = found;
    found = OF(sum_of_moduli)(n, x, 1);
    if (found <= before) break;
  }
  for (int i = 0; n > 1 && i < n; i++) x[i] = (i % 2 ? -1 : 1) * (1 + (REAL)i / (n - 1));
  if (n > 1) {
    OF(apply_inverse)(f, rows, x);
    REAL other = 2 * (OF(sum_of_moduli)(n, x, 1) / (3 * n));
    if (other > found) found = other;
  }
  free(signs);
  free(x);
  return found;
}

static REAL OF(condition)(const struct OF(inverse) * f, int rows, REAL norm) {
  if (f->n == 0) return 1;
  if (norm == 0) return 0;
  for (index_t i = 0; f->diag != 'U' && i < f->n; i++)
    if (f->a[i + i * f->lda] == 0) return 0;
  return 1 / OF(norm_of_inverse)(f, rows) / norm;
}

void BLAS(gecon)(const char *norm, const int *n, const SCALAR *a, const int *lda, const REAL *anorm, REAL *rcond,
                 SCALAR *work, void *space, int *info) {
  struct OF(inverse) f = {'G', 'A', 'N', *n, *lda, a};
  (void)work, (void)space;
  *info = 0;
  *rcond = OF(condition)(&f, je_upper(norm) == 'I', *anorm);
}

void BLAS(pocon)(const char *uplo, const int *n, const SCALAR *a, const int *lda, const REAL *anorm, REAL *rcond,
                 SCALAR *work, void *space, int *info) {
  struct OF(inverse) f = {je_upper(uplo), 'A', 'N', *n, *lda, a};
  (void)work, (void)space;
  *info = 0;
  *rcond = OF(condition)(&f, 0, *anorm);
}

void BLAS(trcon)(const char *norm, const char *uplo, const char *diag, const int *n, const SCALAR *a, const int *lda,
                 REAL *rcond, SCALAR *work, void *space, int *info) {
  struct OF(inverse) f = {'T', je_upper(uplo), je_upper(diag), *n, *lda, a};
  (void)work, (void)space;
  *info = 0;
  *rcond = OF(condition)(&f, je_upper(norm) == 'I', BLAS(lantr)(norm, uplo, diag, n, n, a, lda, 0));
}

/* Scales that bring the largest entries of rows, and then of columns, to one. */

static const REAL OF(smallest) = sizeof(REAL) == 4 ? (REAL)0x1p-126 : (REAL)0x1p-1022;

static REAL OF(in_range)(REAL x) {
  return x < OF(smallest) ? OF(smallest) : x > 1 / OF(smallest) ? 1 / OF(smallest) : x;
}

/* Turns sizes into scales, and tells the ratio of the least to the most; where one is zero, its number as `info`. */
static REAL OF(scales)(int n, REAL *x, REAL *most, int *info) {
  REAL least = x[0];
  *most = x[0];
  for (int i = n - 1; i >= 0; i--) {
    if (x[i] < least) least = x[i];
    if (x[i] > *most) *most = x[i];
    if (x[i] == 0) *info = i + 1;
  }
  if (least == 0) return 0;
  for (int i = 0; i < n; i++) x[i] = 1 / OF(in_range)(x[i]);
  return OF(in_range)(least) / OF(in_range)(*most);
}

void BLAS(geequ)(const int *m, const int *n, const SCALAR *a, const int *lda, REAL *r, REAL *c, REAL *rowcnd,
                 REAL *colcnd, REAL *amax, int *info) {
  REAL ignored;
  *info = 0;
  if (*m == 0 || *n == 0) {
    *rowcnd = *colcnd = 1, *amax = 0;
    return;
  }
  for (index_t i = 0; i < *m; i++) {
    r[i] = OF(magnitude)(a[i]);
    for (index_t j = 1; j < *n; j++) {
      REAL here = OF(magnitude)(a[i + j * *lda]);
      if (here > r[i]) r[i] = here;
    }
  }
  *rowcnd = OF(scales)(*m, r, amax, info);
  if (*info != 0) return;
  for (index_t j = 0; j < *n; j++) {
    c[j] = OF(magnitude)(a[j * *lda]) * r[0];
    for (index_t i = 1; i < *m; i++) {
      REAL here = OF(magnitude)(a[i + j * *lda]) * r[i];
      if (here > c[j]) c[j] = here;
    }
  }
  *colcnd = OF(scales)(*n, c, &ignored, info);
  if (*info != 0) *info += *m;
}

void BLAS(poequ)(const int *n, const SCALAR *a, const int *lda, REAL *s, REAL *scond, REAL *amax, int *info) {
  REAL least;
  *info = 0;
  if (*n == 0) {
    *scond = 1, *amax = 0;
    return;
  }
  for (index_t i = 0; i < *n; i++) s[i] = REAL_PART(a[i + i * *lda]);
  least = *amax = s[0];
  for (int i = *n - 1; i >= 0; i--) {
    if (s[i] < least) least = s[i];
    if (s[i] > *amax) *amax = s[i];
    if (s[i] <= 0) *info = i + 1;
  }
  if (*info != 0) return;
  for (int i = 0; i < *n; i++) s[i] = 1 / (REAL)__builtin_sqrt(s[i]);
  *scond = (REAL)(__builtin_sqrt(least) / __builtin_sqrt(*amax));
}

/* Matrices that are copied or set. */

void BLAS(lacpy)(const char *uplo, const int *m, const int *n, const SCALAR *a, const int *lda, SCALAR *b,
                 const int *ldb) {
  OF(copy_part)(je_upper(uplo), *m, *n, a, *lda, b, *ldb);
}

void BLAS(laset)(const char *uplo, const int *m, const int *n, const SCALAR *alpha, const SCALAR *beta, SCALAR *a,
                 const int *lda) {
  OF(fill_part)(je_upper(uplo), 1, *m, *n, *alpha, a, *lda);
  for (index_t i = 0; i < *m && i < *n; i++) a[i + i * *lda] = *beta;
}
