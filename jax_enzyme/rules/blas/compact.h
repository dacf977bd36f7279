/* Eigenvalues of packed and tridiagonal matrices, by way of the whole matrix: put into kernels that call these
   routines. What they destroy is no number. */

static void OF(packed_values)(const char *jobz, const char *uplo, int n, SCALAR *ap, REAL *w, SCALAR *z, int ldz,
                              int *info) {
  int ld = je_at_least_one(n);
  char part = je_upper(uplo);
  SCALAR *a = OF(new_triangle)(part, n, ap);
  OF(eigenvectors)(jobz, uplo, n, a, ld, w, info);
  if (je_upper(jobz) == 'V') OF(copy_part)('A', n, n, a, ld, z, ldz);
  free(a);
  OF(fill)(n * (n + 1) / 2, (SCALAR)__builtin_nan(""), ap, 1);
}

#ifdef COMPLEX

void BLAS(hpev)(const char *jobz, const char *uplo, const int *n, SCALAR *ap, REAL *w, SCALAR *z, const int *ldz,
                SCALAR *work, REAL *rwork, int *info) {
  (void)work, (void)rwork;
  OF(packed_values)(jobz, uplo, *n, ap, w, z, *ldz, info);
}

#else

void BLAS(spev)(const char *jobz, const char *uplo, const int *n, SCALAR *ap, SCALAR *w, SCALAR *z, const int *ldz,
                SCALAR *work, int *info) {
  (void)work;
  OF(packed_values)(jobz, uplo, *n, ap, w, z, *ldz, info);
}

/* d becomes the values; z the vectors, if there is one. */
static void OF(tridiagonal_values)(int n, SCALAR *d, SCALAR *e, SCALAR *z, int ldz, int *info) {
  int ld = je_at_least_one(n);
  char job = z ? 'V' : 'N', lower = 'L';
  SCALAR *a = OF(new)((index_t)ld * n);
  OF(fill_part)(lower, 0, n, n, 0, a, ld);
  for (index_t i = 0; i < n; i++) a[i + i * ld] = d[i];
  for (index_t i = 0; i + 1 < n; i++) a[i + 1 + i * ld] = e[i], e[i] = (SCALAR)__builtin_nan("");
  OF(eigenvectors)(&job, &lower, n, a, ld, d, info);
  if (z) OF(copy_part)('A', n, n, a, ld, z, ldz);
  free(a);
}

void BLAS(stev)(const char *jobz, const int *n, SCALAR *d, SCALAR *e, SCALAR *z, const int *ldz, SCALAR *work,
                int *info) {
  (void)work;
  OF(tridiagonal_values)(*n, d, e, je_upper(jobz) == 'V' ? z : 0, *ldz, info);
}

void BLAS(stevd)(const char *jobz, const int *n, SCALAR *d, SCALAR *e, SCALAR *z, const int *ldz, SCALAR *work,
                 const int *lwork, int *iwork, const int *liwork, int *info) {
  int size = 1 + 4 * *n + *n * *n;
  *info = 0;
  *iwork = 3 + 5 * *n;
  if (OF(asks)(lwork, size, work) || *liwork == -1) return;
  OF(tridiagonal_values)(*n, d, e, je_upper(jobz) == 'V' ? z : 0, *ldz, info);
}

void BLAS(sterf)(const int *n, SCALAR *d, SCALAR *e, int *info) { OF(tridiagonal_values)(*n, d, e, 0, 1, info); }

/* Vectors of the tridiagonal matrix (I), or of the one that z takes to it (V). */
void BLAS(steqr)(const char *compz, const int *n, SCALAR *d, SCALAR *e, SCALAR *z, const int *ldz, SCALAR *work,
                 int *info) {
  char job = je_upper(compz);
  int ld = je_at_least_one(*n);
  SCALAR *before = job == 'V' ? OF(new_copy)('A', *n, *n, z, *ldz) : 0;
  (void)work;
  OF(tridiagonal_values)(*n, d, e, job == 'N' ? 0 : z, *ldz, info);
  if (before) {
    SCALAR *both = OF(new_product)('N', 'N', *n, *n, *n, before, ld, z, *ldz);
    OF(copy_part)('A', *n, *n, both, ld, z, *ldz);
    free(both);
  }
  free(before);
}

#endif
