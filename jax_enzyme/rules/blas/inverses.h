/* Inverses, in terms of other routines, and put into kernels that call them. A call with lwork = -1 asks for the size
 * of `work`. */

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
