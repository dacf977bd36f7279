/* Inverses, and symmetric matrices that are not positive definite: in terms of other routines, and put into kernels
   that call them. A call with lwork = -1 asks for the size of `work`. */

static int OF(asks)(const int *lwork, int size, SCALAR *work) {
  *work = je_at_least_one(size);
  return *lwork == -1;
}

static void OF(identity)(int m, int n, SCALAR *a, int lda) {
  OF(fill_part)('A', 0, m, n, 0, a, lda);
  for (int i = 0; i < (m < n ? m : n); i++) a[i + (index_t)i * lda] = 1;
}

static int OF(first_zero)(int n, const SCALAR *a, int lda) {
  for (int i = 0; i < n; i++)
    if (a[i + (index_t)i * lda] == 0) return i + 1;
  return 0;
}

/* A X = 1 for the whole of X. */
void BLAS(getri)(const int *n, SCALAR *a, const int *lda, const int *ipiv, SCALAR *work, const int *lwork, int *info) {
  int ld = je_at_least_one(*n);
  *info = 0;
  if (OF(asks)(lwork, *n, work)) return;
  *info = OF(first_zero)(*n, a, *lda);
  if (*info != 0) return;
  SCALAR *factors = OF(new_copy)('A', *n, *n, a, *lda);
  OF(identity)(*n, *n, a, *lda);
  BLAS(getrs)(&je_as_it_is, n, n, factors, &ld, ipiv, a, lda, info);
  free(factors);
}

/* The triangle of X is the result. */
void BLAS(potri)(const char *uplo, const int *n, SCALAR *a, const int *lda, int *info) {
  int ld = je_at_least_one(*n);
  *info = OF(first_zero)(*n, a, *lda);
  if (*info != 0) return;
  SCALAR *x = OF(new)((index_t)ld * *n);
  OF(identity)(*n, *n, x, ld);
  BLAS(potrs)(uplo, n, n, a, lda, x, &ld, info);
  OF(copy_part)(je_upper(uplo), *n, *n, x, ld, a, *lda);
  free(x);
}

void BLAS(trtri)(const char *uplo, const char *diag, const int *n, SCALAR *a, const int *lda, int *info) {
  int ld = je_at_least_one(*n), unit = je_upper(diag) == 'U';
  char part = je_upper(uplo);
  *info = unit ? 0 : OF(first_zero)(*n, a, *lda);
  if (*info != 0) return;
  SCALAR *x = OF(new)((index_t)ld * *n);
  OF(identity)(*n, *n, x, ld);
  BLAS(trsm)(&je_left, uplo, &je_as_it_is, diag, n, n, &OF(one), a, lda, x, &ld);
  for (int j = 0; j < *n; j++)
    for (int i = je_first_row(part, unit, j); i < je_last_row(part, unit, j, *n); i++)
      a[i + (index_t)j * *lda] = x[i + (index_t)j * ld];
  free(x);
}

#ifndef COMPLEX

/* A = P L D L^T P^T with blocks of size one and two in D (J. R. Bunch and L. Kaufman, Some stable methods for
   calculating inertia and solving symmetric linear systems, 1977). Seen from its last row and column, an upper triangle
   is a lower one: row i counts from there, and so do pivots. Of entries of equal size the first of the column as it is
   stored is taken. */

static inline index_t OF(symmetric_at)(char uplo, int n, int lda, int i, int j) {
  return uplo == 'L' ? i + (index_t)j * lda : n - 1 - i + (index_t)(n - 1 - j) * lda;
}

#define ENTRY(i, j) a[OF(symmetric_at)(part, size, *lda, i, j)]
#define COUNTED(i) (part == 'L' ? (i) : size - 1 - (i))

static inline SCALAR OF(magnitude)(SCALAR x) { return x < 0 ? -x : x; }

/* Exchanges rows and columns p and q > p of what column k and those behind it hold. */
static void OF(symmetric_swap)(char part, int size, int k, int p, int q, SCALAR *a, const int *lda) {
  for (int i = q + 1; i < size; i++) {
    SCALAR kept = ENTRY(i, p);
    ENTRY(i, p) = ENTRY(i, q), ENTRY(i, q) = kept;
  }
  for (int i = p + 1; i < q; i++) {
    SCALAR kept = ENTRY(i, p);
    ENTRY(i, p) = ENTRY(q, i), ENTRY(q, i) = kept;
  }
  SCALAR kept = ENTRY(p, p);
  ENTRY(p, p) = ENTRY(q, q), ENTRY(q, q) = kept;
  if (p > k) {
    kept = ENTRY(p, k);
    ENTRY(p, k) = ENTRY(q, k), ENTRY(q, k) = kept;
  }
}

void BLAS(sytrf)(const char *uplo, const int *n, SCALAR *a, const int *lda, int *ipiv, SCALAR *work, const int *lwork,
                 int *info) {
  const SCALAR bound = (SCALAR)0.64038820320220756; /* (1 + sqrt 17) / 8 */
  char part = je_upper(uplo);
  int size = *n, width;
  *info = 0;
  if (OF(asks)(lwork, size, work)) return;
  for (int k = 0; k < size; k += width) {
    SCALAR own = OF(magnitude)(ENTRY(k, k)), most = 0, across = 0;
    int largest = k, pivot = k;
    width = 1;
    for (int i = k + 1; i < size; i++) {
      SCALAR here = OF(magnitude)(ENTRY(i, k));
      if (here > most || (part == 'U' && here == most)) most = here, largest = i;
    }
    if (own == 0 && most == 0) {
      if (*info == 0) *info = COUNTED(k) + 1;
      ipiv[COUNTED(k)] = COUNTED(k) + 1;
      continue;
    }
    if (own < bound * most) {
      for (int j = k; j < size; j++) {
        SCALAR here = j == largest ? 0 : OF(magnitude)(j < largest ? ENTRY(largest, j) : ENTRY(j, largest));
        if (here > across) across = here;
      }
      if (own * across >= bound * most * most)
        pivot = k;
      else if (OF(magnitude)(ENTRY(largest, largest)) >= bound * across)
        pivot = largest;
      else
        pivot = largest, width = 2;
    }
    int place = k + width - 1;
    if (pivot != place) OF(symmetric_swap)(part, size, k, place, pivot, a, lda);
    if (width == 1) {
      SCALAR d = ENTRY(k, k);
      for (int j = k + 1; j < size; j++) {
        SCALAR l = ENTRY(j, k) / d;
        for (int i = j; i < size; i++) ENTRY(i, j) -= ENTRY(i, k) * l;
      }
      for (int i = k + 1; i < size; i++) ENTRY(i, k) /= d;
      ipiv[COUNTED(k)] = COUNTED(pivot) + 1;
      continue;
    }
    /* [u v] D = [x y]: by differences of ratios to the entry off the diagonal, which is the largest. */
    SCALAR off = ENTRY(k + 1, k), first = ENTRY(k, k) / off, second = ENTRY(k + 1, k + 1) / off;
    SCALAR scale = 1 / (first * second - 1) / off;
    for (int j = k + 2; j < size; j++) {
      SCALAR u = scale * (second * ENTRY(j, k) - ENTRY(j, k + 1)), v = scale * (first * ENTRY(j, k + 1) - ENTRY(j, k));
      for (int i = j; i < size; i++) ENTRY(i, j) -= ENTRY(i, k) * u + ENTRY(i, k + 1) * v;
      ENTRY(j, k) = u, ENTRY(j, k + 1) = v;
    }
    ipiv[COUNTED(k)] = ipiv[COUNTED(k + 1)] = -(COUNTED(pivot) + 1);
  }
}

static void OF(swap_solution)(char part, int size, int p, int q, SCALAR *x) {
  SCALAR kept = x[COUNTED(p)];
  x[COUNTED(p)] = x[COUNTED(q)], x[COUNTED(q)] = kept;
}

void BLAS(sytrs)(const char *uplo, const int *n, const int *nrhs, const SCALAR *a, const int *lda, const int *ipiv,
                 SCALAR *b, const int *ldb, int *info) {
  char part = je_upper(uplo);
  int size = *n, width;
  *info = 0;
  for (int r = 0; r < *nrhs; r++) {
    SCALAR *x = b + (index_t)r * *ldb;
    for (int k = 0; k < size; k += width) {
      int p = ipiv[COUNTED(k)], place;
      width = p > 0 ? 1 : 2, place = k + width - 1, p = COUNTED((p > 0 ? p : -p) - 1);
      OF(swap_solution)(part, size, place, p, x);
      SCALAR u = x[COUNTED(k)], v = x[COUNTED(place)];
      for (int i = place + 1; i < size; i++)
        x[COUNTED(i)] -= width == 1 ? ENTRY(i, k) * u : ENTRY(i, k) * u + ENTRY(i, place) * v;
      if (width == 1) {
        x[COUNTED(k)] = u / ENTRY(k, k);
      } else {
        SCALAR off = ENTRY(place, k), first = ENTRY(k, k) / off, second = ENTRY(place, place) / off;
        SCALAR scale = 1 / (first * second - 1) / off;
        x[COUNTED(k)] = scale * (second * u - v), x[COUNTED(place)] = scale * (first * v - u);
      }
    }
    for (int k = size - 1; k >= 0; k -= width) {
      int p = ipiv[COUNTED(k)], start;
      width = p > 0 ? 1 : 2, start = k - width + 1, p = COUNTED((p > 0 ? p : -p) - 1);
      for (int j = start; j <= k; j++) {
        SCALAR sum = x[COUNTED(j)];
        for (int i = k + 1; i < size; i++) sum -= ENTRY(i, j) * x[COUNTED(i)];
        x[COUNTED(j)] = sum;
      }
      OF(swap_solution)(part, size, k, p, x);
    }
  }
}

#undef ENTRY
#undef COUNTED

void BLAS(sysv)(const char *uplo, const int *n, const int *nrhs, SCALAR *a, const int *lda, int *ipiv, SCALAR *b,
                const int *ldb, SCALAR *work, const int *lwork, int *info) {
  BLAS(sytrf)(uplo, n, a, lda, ipiv, work, lwork, info);
  if (*lwork != -1 && *info == 0) BLAS(sytrs)(uplo, n, nrhs, a, lda, ipiv, b, ldb, info);
}

void BLAS(sytri)(const char *uplo, const int *n, SCALAR *a, const int *lda, const int *ipiv, SCALAR *work, int *info) {
  int ld = je_at_least_one(*n);
  (void)work;
  *info = 0;
  for (int i = 0; i < *n; i++)
    if (ipiv[i] > 0 && a[i + (index_t)i * *lda] == 0) *info = i + 1;
  if (*info != 0) return;
  SCALAR *x = OF(new)((index_t)ld * *n);
  OF(identity)(*n, *n, x, ld);
  BLAS(sytrs)(uplo, n, n, a, lda, ipiv, x, &ld, info);
  OF(copy_part)(je_upper(uplo), *n, *n, x, ld, a, *lda);
  free(x);
}

#endif
