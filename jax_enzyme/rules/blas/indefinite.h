/* Symmetric and Hermitian matrices that are not positive definite, also as packed triangles: put into kernels that call
   these routines, and differentiated as code.

   A = P L D L^T P^T, or with L^H, with blocks of size one and two in D (J. R. Bunch and L. Kaufman, Some stable methods
   for calculating inertia and solving symmetric linear systems, 1977). Seen from its last row and column, an upper
   triangle is a lower one: row i counts from there, and so do pivots. Of entries of equal size the first of the column
   as it is stored is taken. */

static inline index_t OF(symmetric_at)(char uplo, int n, int lda, int i, int j) {
  return uplo == 'L' ? i + (index_t)j * lda : n - 1 - i + (index_t)(n - 1 - j) * lda;
}

#define ENTRY(i, j) a[OF(symmetric_at)(part, size, lda, i, j)]
#define COUNTED(i) (part == 'L' ? (i) : size - 1 - (i))
#define TURNED(x) (hermitian ? CONJ(x) : (x))
#define ITSELF(x) (hermitian ? (SCALAR)REAL_PART(x) : (x))

/* Exchanges rows and columns p and q > p of what column k and those behind it hold. */
static void OF(symmetric_swap)(char part, int hermitian, int size, int k, int p, int q, SCALAR *a, int lda) {
  for (int i = q + 1; i < size; i++) {
    SCALAR kept = ENTRY(i, p);
    ENTRY(i, p) = ENTRY(i, q), ENTRY(i, q) = kept;
  }
  for (int i = p + 1; i < q; i++) {
    SCALAR kept = TURNED(ENTRY(i, p));
    ENTRY(i, p) = TURNED(ENTRY(q, i)), ENTRY(q, i) = kept;
  }
  SCALAR kept = ENTRY(p, p);
  ENTRY(p, p) = ENTRY(q, q), ENTRY(q, q) = kept;
  ENTRY(q, p) = TURNED(ENTRY(q, p));
  if (p > k) {
    kept = ENTRY(p, k);
    ENTRY(p, k) = ENTRY(q, k), ENTRY(q, k) = kept;
  }
}

static void OF(indefinite_factors)(char part, int hermitian, int size, SCALAR *a, int lda, int *ipiv, int *info) {
  const REAL bound = (REAL)0.64038820320220756; /* (1 + sqrt 17) / 8 */
  int width;
  *info = 0;
  for (int k = 0; k < size; k++) ENTRY(k, k) = ITSELF(ENTRY(k, k));
  for (int k = 0; k < size; k += width) {
    REAL own = OF(magnitude)(ENTRY(k, k)), most = 0, across = 0;
    int largest = k, pivot = k;
    width = 1;
    for (int i = k + 1; i < size; i++) {
      REAL here = OF(magnitude)(ENTRY(i, k));
      if (here > most || (part == 'U' && here == most)) most = here, largest = i;
    }
    if (own == 0 && most == 0) {
      if (*info == 0) *info = COUNTED(k) + 1;
      ipiv[COUNTED(k)] = COUNTED(k) + 1;
      continue;
    }
    if (own < bound * most) {
      for (int j = k; j < size; j++) {
        REAL here = j == largest ? 0 : OF(magnitude)(j < largest ? ENTRY(largest, j) : ENTRY(j, largest));
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
    if (pivot != place) OF(symmetric_swap)(part, hermitian, size, k, place, pivot, a, lda);
    if (width == 1) {
      SCALAR d = ENTRY(k, k);
      for (int j = k + 1; j < size; j++) {
        SCALAR l = TURNED(ENTRY(j, k) / d);
        for (int i = j; i < size; i++) ENTRY(i, j) -= ENTRY(i, k) * l;
        ENTRY(j, j) = ITSELF(ENTRY(j, j));
      }
      for (int i = k + 1; i < size; i++) ENTRY(i, k) /= d;
      ipiv[COUNTED(k)] = COUNTED(pivot) + 1;
      continue;
    }
    /* [u v] D = [x y]: by differences of ratios to the entry off the diagonal, which is the largest. */
    SCALAR off = ENTRY(k + 1, k), beside = TURNED(off), first = ENTRY(k, k) / beside,
           second = ENTRY(k + 1, k + 1) / off;
    SCALAR scale = 1 / (first * second - 1);
    for (int j = k + 2; j < size; j++) {
      SCALAR u = scale / beside * (second * ENTRY(j, k) - ENTRY(j, k + 1)),
             v = scale / off * (first * ENTRY(j, k + 1) - ENTRY(j, k)), p = TURNED(u), q = TURNED(v);
      for (int i = j; i < size; i++) ENTRY(i, j) -= ENTRY(i, k) * p + ENTRY(i, k + 1) * q;
      ENTRY(j, j) = ITSELF(ENTRY(j, j));
      ENTRY(j, k) = u, ENTRY(j, k + 1) = v;
    }
    ipiv[COUNTED(k)] = ipiv[COUNTED(k + 1)] = -(COUNTED(pivot) + 1);
  }
}

static void OF(swap_solution)(char part, int size, int p, int q, SCALAR *x) {
  SCALAR kept = x[COUNTED(p)];
  x[COUNTED(p)] = x[COUNTED(q)], x[COUNTED(q)] = kept;
}

static void OF(indefinite_solution)(char part, int hermitian, int size, int nrhs, const SCALAR *a, int lda,
                                    const int *ipiv, SCALAR *b, int ldb) {
  int width;
  for (int r = 0; r < nrhs; r++) {
    SCALAR *x = b + (index_t)r * ldb;
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
        SCALAR off = ENTRY(place, k), beside = TURNED(off), first = ENTRY(k, k) / off,
               second = ENTRY(place, place) / beside;
        SCALAR scale = 1 / (first * second - 1);
        x[COUNTED(k)] = scale / off * (second * u - v), x[COUNTED(place)] = scale / beside * (first * v - u);
      }
    }
    for (int k = size - 1; k >= 0; k -= width) {
      int p = ipiv[COUNTED(k)], start;
      width = p > 0 ? 1 : 2, start = k - width + 1, p = COUNTED((p > 0 ? p : -p) - 1);
      for (int j = start; j <= k; j++) {
        SCALAR sum = x[COUNTED(j)];
        for (int i = k + 1; i < size; i++) sum -= TURNED(ENTRY(i, j)) * x[COUNTED(i)];
        x[COUNTED(j)] = sum;
      }
      OF(swap_solution)(part, size, k, p, x);
    }
  }
}

static void OF(indefinite_inverse)(char part, int hermitian, int n, SCALAR *a, int lda, const int *ipiv, int *info) {
  int ld = je_at_least_one(n);
  *info = 0;
  for (int i = 0; i < n; i++)
    if (ipiv[i] > 0 && a[i + (index_t)i * lda] == 0) *info = i + 1;
  if (*info != 0) return;
  SCALAR *x = OF(new)((index_t)ld * n);
  OF(identity)(n, n, x, ld);
  OF(indefinite_solution)(part, hermitian, n, n, a, lda, ipiv, x, ld);
  OF(copy_part)(part, n, n, x, ld, a, lda);
  for (index_t i = 0; i < n; i++) a[i + i * lda] = ITSELF(a[i + i * lda]);
  free(x);
}

#undef ENTRY
#undef COUNTED
#undef TURNED
#undef ITSELF

static SCALAR *OF(new_triangle)(char part, int n, const SCALAR *ap) {
  int ld = je_at_least_one(n);
  SCALAR *a = OF(new)((index_t)ld * n);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, n); i++)
      a[i + (index_t)j * ld] = ap[OF(stored)(part, n, n, 0, i, j)];
  return a;
}

static void OF(pack_triangle)(char part, int n, SCALAR *a, SCALAR *ap) {
  int ld = je_at_least_one(n);
  for (int j = 0; j < n; j++)
    for (int i = je_first_row(part, 0, j); i < je_last_row(part, 0, j, n); i++)
      ap[OF(stored)(part, n, n, 0, i, j)] = a[i + (index_t)j * ld];
  free(a);
}

/* The routines of one kind of matrices: by columns, and as a packed triangle by way of the whole one. */
#define INDEFINITE(whole, packed, hermitian)                                                                           \
  void BLAS(JOIN(whole, trf))(const char *uplo, const int *n, SCALAR *a, const int *lda, int *ipiv, SCALAR *work,      \
                              const int *lwork, int *info) {                                                           \
    *info = 0;                                                                                                         \
    if (OF(asks)(lwork, *n, work)) return;                                                                             \
    OF(indefinite_factors)(je_upper(uplo), hermitian, *n, a, *lda, ipiv, info);                                        \
  }                                                                                                                    \
  void BLAS(JOIN(whole, trs))(const char *uplo, const int *n, const int *nrhs, const SCALAR *a, const int *lda,        \
                              const int *ipiv, SCALAR *b, const int *ldb, int *info) {                                 \
    *info = 0;                                                                                                         \
    OF(indefinite_solution)(je_upper(uplo), hermitian, *n, *nrhs, a, *lda, ipiv, b, *ldb);                             \
  }                                                                                                                    \
  void BLAS(JOIN(whole, sv))(const char *uplo, const int *n, const int *nrhs, SCALAR *a, const int *lda, int *ipiv,    \
                             SCALAR *b, const int *ldb, SCALAR *work, const int *lwork, int *info) {                   \
    BLAS(JOIN(whole, trf))(uplo, n, a, lda, ipiv, work, lwork, info);                                                  \
    if (*lwork != -1 && *info == 0) BLAS(JOIN(whole, trs))(uplo, n, nrhs, a, lda, ipiv, b, ldb, info);                 \
  }                                                                                                                    \
  void BLAS(JOIN(whole, tri))(const char *uplo, const int *n, SCALAR *a, const int *lda, const int *ipiv,              \
                              SCALAR *work, int *info) {                                                               \
    (void)work;                                                                                                        \
    OF(indefinite_inverse)(je_upper(uplo), hermitian, *n, a, *lda, ipiv, info);                                        \
  }                                                                                                                    \
  void BLAS(JOIN(packed, trf))(const char *uplo, const int *n, SCALAR *ap, int *ipiv, int *info) {                     \
    char part = je_upper(uplo);                                                                                        \
    SCALAR *a = OF(new_triangle)(part, *n, ap);                                                                        \
    OF(indefinite_factors)(part, hermitian, *n, a, je_at_least_one(*n), ipiv, info);                                   \
    OF(pack_triangle)(part, *n, a, ap);                                                                                \
  }                                                                                                                    \
  void BLAS(JOIN(packed, trs))(const char *uplo, const int *n, const int *nrhs, const SCALAR *ap, const int *ipiv,     \
                               SCALAR *b, const int *ldb, int *info) {                                                 \
    char part = je_upper(uplo);                                                                                        \
    SCALAR *a = OF(new_triangle)(part, *n, ap);                                                                        \
    *info = 0;                                                                                                         \
    OF(indefinite_solution)(part, hermitian, *n, *nrhs, a, je_at_least_one(*n), ipiv, b, *ldb);                        \
    free(a);                                                                                                           \
  }                                                                                                                    \
  void BLAS(JOIN(packed, sv))(const char *uplo, const int *n, const int *nrhs, SCALAR *ap, int *ipiv, SCALAR *b,       \
                              const int *ldb, int *info) {                                                             \
    BLAS(JOIN(packed, trf))(uplo, n, ap, ipiv, info);                                                                  \
    if (*info == 0) BLAS(JOIN(packed, trs))(uplo, n, nrhs, ap, ipiv, b, ldb, info);                                    \
  }                                                                                                                    \
  void BLAS(JOIN(packed, tri))(const char *uplo, const int *n, SCALAR *ap, const int *ipiv, SCALAR *work, int *info) { \
    char part = je_upper(uplo);                                                                                        \
    SCALAR *a = OF(new_triangle)(part, *n, ap);                                                                        \
    (void)work;                                                                                                        \
    OF(indefinite_inverse)(part, hermitian, *n, a, je_at_least_one(*n), ipiv, info);                                   \
    OF(pack_triangle)(part, *n, a, ap);                                                                                \
  }

INDEFINITE(sy, sp, 0)
#ifdef COMPLEX
INDEFINITE(he, hp, 1)
#endif

#undef INDEFINITE
