/* Operations on vectors and matrices that the rules are made of. */

#ifdef COMPLEX
#define CONJ(x) __builtin_complex(__real__(x), -__imag__(x))
#else
#define CONJ(x) (x)
#endif

/* Operations on a matrix: N as it is, T transposed, C conjugate transposed, R conjugated. BLAS does not know R; real
   matrices have N and T only. */
#ifdef COMPLEX
static inline char OF(operation)(const char *flag) { return je_upper(flag); }
static inline char OF(adjoint)(char op) { return op == 'N' ? 'C' : op == 'C' ? 'N' : op == 'T' ? 'R' : 'T'; }
static inline char OF(transposed)(char op) { return op == 'N' ? 'T' : op == 'T' ? 'N' : op == 'C' ? 'R' : 'C'; }
#else
static inline char OF(operation)(const char *flag) { return je_upper(flag) == 'N' ? 'N' : 'T'; }
static inline char OF(adjoint)(char op) { return op == 'N' ? 'T' : 'N'; }
static inline char OF(transposed)(char op) { return op == 'N' ? 'T' : 'N'; }
#endif

static const SCALAR OF(zero) = 0;
static const SCALAR OF(one) = 1;
static const SCALAR OF(minus_one) = -1;

extern void BLAS(axpy)(const int *, const SCALAR *, const SCALAR *, const int *, SCALAR *, const int *);
extern void BLAS(scal)(const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(copy)(const int *, const SCALAR *, const int *, SCALAR *, const int *);
extern void BLAS(swap)(const int *, SCALAR *, const int *, SCALAR *, const int *);
extern void BLAS(gemv)(const char *, const int *, const int *, const SCALAR *, const SCALAR *, const int *,
                       const SCALAR *, const int *, const SCALAR *, SCALAR *, const int *);
#ifdef COMPLEX
extern void BLAS(geru)(const int *, const int *, const SCALAR *, const SCALAR *, const int *, const SCALAR *,
                       const int *, SCALAR *, const int *);
extern void BLAS(gerc)(const int *, const int *, const SCALAR *, const SCALAR *, const int *, const SCALAR *,
                       const int *, SCALAR *, const int *);
#else
extern void BLAS(ger)(const int *, const int *, const SCALAR *, const SCALAR *, const int *, const SCALAR *,
                      const int *, SCALAR *, const int *);
extern void BLAS(symv)(const char *, const int *, const SCALAR *, const SCALAR *, const int *, const SCALAR *,
                       const int *, const SCALAR *, SCALAR *, const int *);
#endif
extern void BLAS(trmv)(const char *, const char *, const char *, const int *, const SCALAR *, const int *, SCALAR *,
                       const int *);
extern void BLAS(trsv)(const char *, const char *, const char *, const int *, const SCALAR *, const int *, SCALAR *,
                       const int *);
extern void BLAS(gemm)(const char *, const char *, const int *, const int *, const int *, const SCALAR *,
                       const SCALAR *, const int *, const SCALAR *, const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(symm)(const char *, const char *, const int *, const int *, const SCALAR *, const SCALAR *,
                       const int *, const SCALAR *, const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(syrk)(const char *, const char *, const int *, const int *, const SCALAR *, const SCALAR *,
                       const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(syr2k)(const char *, const char *, const int *, const int *, const SCALAR *, const SCALAR *,
                        const int *, const SCALAR *, const int *, const SCALAR *, SCALAR *, const int *);
extern void BLAS(trmm)(const char *, const char *, const char *, const char *, const int *, const int *, const SCALAR *,
                       const SCALAR *, const int *, SCALAR *, const int *);
extern void BLAS(trsm)(const char *, const char *, const char *, const char *, const int *, const int *, const SCALAR *,
                       const SCALAR *, const int *, SCALAR *, const int *);

/* Memory */

static inline SCALAR *OF(new)(index_t count) {
  return (SCALAR *)malloc((unsigned long)(count > 0 ? count : 1) * sizeof(SCALAR));
}

static inline SCALAR *OF(allocate)(void *arena, index_t count) {
  return (SCALAR *)je_arena_allocate(arena, (count > 0 ? count : 1) * (long)sizeof(SCALAR));
}

/* Loops that BLAS has no routine for. They move numbers, and cost nothing next to what surrounds them. */

static void OF(pack)(int n, const SCALAR *x, int inc, SCALAR *to) {
  index_t start = je_start(n, inc);
  for (int i = 0; i < n; i++) to[i] = x[start + (index_t)i * inc];
}

static void OF(unpack_add)(int n, const SCALAR *from, SCALAR *x, int inc) {
  index_t start = je_start(n, inc);
  for (int i = 0; i < n; i++) x[start + (index_t)i * inc] += from[i];
}

static void OF(fill)(int n, SCALAR value, SCALAR *x, int inc) {
  index_t step = inc < 0 ? -(index_t)inc : inc;
  for (int i = 0; i < n; i++) x[i * step] = value;
}

/* The triangle `uplo` of an m x n matrix, or all of it ('A'). */
static void OF(copy_part)(char uplo, int m, int n, const SCALAR *a, int lda, SCALAR *to, int ldt) {
  for (int j = 0; j < n; j++) {
    int last = je_last_row(uplo, 0, j, m);
    for (int i = je_first_row(uplo, 0, j); i < last; i++) to[i + (index_t)j * ldt] = a[i + (index_t)j * lda];
  }
}

static void OF(fill_part)(char uplo, int strict, int m, int n, SCALAR value, SCALAR *a, int lda) {
  for (int j = 0; j < n; j++) {
    int last = je_last_row(uplo, strict, j, m);
    for (int i = je_first_row(uplo, strict, j); i < last; i++) a[i + (index_t)j * lda] = value;
  }
}

/* to += alpha a, in a triangle or in all. */
static void OF(add_part)(char uplo, int strict, int m, int n, SCALAR alpha, const SCALAR *a, int lda, SCALAR *to,
                         int ldt) {
  for (int j = 0; j < n; j++) {
    int first = je_first_row(uplo, strict, j), count = je_last_row(uplo, strict, j, m) - first;
    if (count > 0)
      BLAS(axpy)(&count, &alpha, a + first + (index_t)j * lda, &je_one_int, to + first + (index_t)j * ldt, &je_one_int);
  }
}

/* a *= alpha, in a triangle or in all; what is multiplied by zero is zero, as in BLAS, even if it was no number. */
static void OF(scale_part)(char uplo, int m, int n, SCALAR alpha, SCALAR *a, int lda) {
  if (alpha == 0) {
    OF(fill_part)(uplo, 0, m, n, 0, a, lda);
    return;
  }
  for (int j = 0; j < n; j++) {
    int first = je_first_row(uplo, 0, j), count = je_last_row(uplo, 0, j, m) - first;
    if (count > 0) BLAS(scal)(&count, &alpha, a + first + (index_t)j * lda, &je_one_int);
  }
}

static void OF(scale)(int n, SCALAR alpha, SCALAR *x, int inc) {
  int step = inc < 0 ? -inc : inc;
  if (alpha == 0)
    OF(fill)(n, 0, x, inc);
  else
    BLAS(scal)(&n, &alpha, x, &step);
}

/* Copies that a frame keeps. */

static const SCALAR *OF(keep_vector)(void *arena, int in_place, int n, const SCALAR *x, int *inc) {
  if (in_place) return x;
  SCALAR *copy = OF(allocate)(arena, n);
  OF(pack)(n, x, *inc, copy);
  *inc = 1;
  return copy;
}

static const SCALAR *OF(keep_part)(void *arena, int in_place, char uplo, int m, int n, const SCALAR *a, int *lda) {
  if (in_place) return a;
  int ld = je_at_least_one(m);
  SCALAR *copy = OF(allocate)(arena, (index_t)ld * n);
  OF(copy_part)(uplo, m, n, a, *lda, copy, ld);
  *lda = ld;
  return copy;
}

/* Sums of products. inner(x, y) is the sum of conj(x) y, so that the cotangent of alpha in y = alpha x is inner(x,
 * ybar). */

#ifdef COMPLEX
extern REAL REAL_BLAS(dot)(const int *, const REAL *, const int *, const REAL *, const int *);

static SCALAR OF(inner)(int n, const SCALAR *x, int incx, const SCALAR *y, int incy) {
  const REAL *a = (const REAL *)x, *b = (const REAL *)y;
  int inca = 2 * incx, incb = 2 * incy;
  REAL real = REAL_BLAS(dot)(&n, a, &inca, b, &incb) + REAL_BLAS(dot)(&n, a + 1, &inca, b + 1, &incb);
  REAL imaginary = REAL_BLAS(dot)(&n, a, &inca, b + 1, &incb) - REAL_BLAS(dot)(&n, a + 1, &inca, b, &incb);
  return __builtin_complex(real, imaginary);
}

/* The sum of x y, nothing conjugated. */
static SCALAR OF(plain_dot)(int n, const SCALAR *x, int incx, const SCALAR *y, int incy) {
  const REAL *a = (const REAL *)x, *b = (const REAL *)y;
  int inca = 2 * incx, incb = 2 * incy;
  REAL real = REAL_BLAS(dot)(&n, a, &inca, b, &incb) - REAL_BLAS(dot)(&n, a + 1, &inca, b + 1, &incb);
  REAL imaginary = REAL_BLAS(dot)(&n, a, &inca, b + 1, &incb) + REAL_BLAS(dot)(&n, a + 1, &inca, b, &incb);
  return __builtin_complex(real, imaginary);
}
#else
extern SCALAR BLAS(dot)(const int *, const SCALAR *, const int *, const SCALAR *, const int *);
static inline SCALAR OF(inner)(int n, const SCALAR *x, int incx, const SCALAR *y, int incy) {
  return BLAS(dot)(&n, x, &incx, y, &incy);
}

static inline SCALAR OF(plain_dot)(int n, const SCALAR *x, int incx, const SCALAR *y, int incy) {
  return BLAS(dot)(&n, x, &incx, y, &incy);
}
#endif

static SCALAR OF(inner_part)(char uplo, int m, int n, const SCALAR *a, int lda, const SCALAR *b, int ldb) {
  SCALAR sum = 0;
  for (int j = 0; j < n; j++) {
    int first = je_first_row(uplo, 0, j), count = je_last_row(uplo, 0, j, m) - first;
    if (count > 0) sum += OF(inner)(count, a + first + (index_t)j * lda, 1, b + first + (index_t)j * ldb, 1);
  }
  return sum;
}

/* Conjugates a vector in place: negates its imaginary parts. */
static void OF(conjugate)(int n, SCALAR *x, int inc) {
#ifdef COMPLEX
  index_t step = inc < 0 ? -(index_t)inc : inc;
  for (int i = 0; i < n; i++) x[i * step] = CONJ(x[i * step]);
#else
  (void)n, (void)x, (void)inc;
#endif
}

static void OF(conjugate_part)(int m, int n, SCALAR *a, int lda) {
  for (int j = 0; j < n; j++) OF(conjugate)(m, a + (index_t)j * lda, 1);
}

/* conj(a), to be released; a itself where numbers are real. */
static const SCALAR *OF(conjugate_of)(int m, int n, const SCALAR *a, int *lda) {
#ifdef COMPLEX
  int ld = je_at_least_one(m);
  SCALAR *copy = OF(new)((index_t)ld * n);
  OF(copy_part)('A', m, n, a, *lda, copy, ld);
  OF(conjugate_part)(m, n, copy, ld);
  *lda = ld;
  return copy;
#else
  (void)m, (void)n, (void)lda;
  return a;
#endif
}

static const SCALAR *OF(conjugate_of_vector)(int n, const SCALAR *x, int *inc) {
#ifdef COMPLEX
  SCALAR *copy = OF(new)(n);
  OF(pack)(n, x, *inc, copy);
  OF(conjugate)(n, copy, 1);
  *inc = 1;
  return copy;
#else
  (void)n, (void)inc;
  return x;
#endif
}

static inline void OF(release)(const SCALAR *conjugate) {
#ifdef COMPLEX
  free((void *)conjugate);
#else
  (void)conjugate;
#endif
}

/* y += alpha x, also where a stride is zero: then one number takes part n times. */
static void OF(accumulate)(int n, SCALAR alpha, const SCALAR *x, int incx, SCALAR *y, int incy) {
  if (incx != 0 && incy != 0) {
    BLAS(axpy)(&n, &alpha, x, &incx, y, &incy);
    return;
  }
  index_t from = je_start(n, incx), to = je_start(n, incy);
  for (int i = 0; i < n; i++) y[to + (index_t)i * incy] += alpha * x[from + (index_t)i * incx];
}

/* z += alpha opx(x) opy(y), of size m x n; the inner size is k. */
static void OF(product)(char opx, char opy, int m, int n, int k, SCALAR alpha, const SCALAR *x, int ldx,
                        const SCALAR *y, int ldy, SCALAR *z, int ldz) {
  char plain_x = opx == 'R' ? 'N' : opx, plain_y = opy == 'R' ? 'N' : opy;
  const SCALAR *u = opx == 'R' ? OF(conjugate_of)(m, k, x, &ldx) : x;
  const SCALAR *v = opy == 'R' ? OF(conjugate_of)(k, n, y, &ldy) : y;
  BLAS(gemm)(&plain_x, &plain_y, &m, &n, &k, &alpha, u, &ldx, v, &ldy, &OF(one), z, &ldz);
  if (opx == 'R') OF(release)(u);
  if (opy == 'R') OF(release)(v);
}

/* b = op(a) b or b op(a), a triangular. The product with a conjugate is the conjugate of a product. */
static void OF(triangular_product)(char side, char uplo, char op, char diag, int m, int n, const SCALAR *a, int lda,
                                   SCALAR *b, int ldb) {
  char plain = op == 'R' ? 'N' : op;
  if (op == 'R') OF(conjugate_part)(m, n, b, ldb);
  BLAS(trmm)(&side, &uplo, &plain, &diag, &m, &n, &OF(one), a, &lda, b, &ldb);
  if (op == 'R') OF(conjugate_part)(m, n, b, ldb);
}

/* The same with the inverse of a. */
static void OF(triangular_solve)(char side, char uplo, char op, char diag, int m, int n, const SCALAR *a, int lda,
                                 SCALAR *b, int ldb) {
  char plain = op == 'R' ? 'N' : op;
  if (op == 'R') OF(conjugate_part)(m, n, b, ldb);
  BLAS(trsm)(&side, &uplo, &plain, &diag, &m, &n, &OF(one), a, &lda, b, &ldb);
  if (op == 'R') OF(conjugate_part)(m, n, b, ldb);
}

/* t = op(da) x or x op(da), where da is the tangent of a triangular matrix: its diagonal is zero if that of a is one.
 */
static SCALAR *OF(new_tangent_product)(char side, char uplo, char op, char diag, int m, int n, const SCALAR *da,
                                       int lda, const SCALAR *x, int ldx) {
  int ld = je_at_least_one(m);
  SCALAR *t = OF(new)((index_t)ld * n);
  OF(copy_part)('A', m, n, x, ldx, t, ld);
  OF(triangular_product)(side, uplo, op, diag, m, n, da, lda, t, ld);
  if (diag == 'U') OF(add_part)('A', 0, m, n, -1, x, ldx, t, ld);
  return t;
}

/* The triangle of abar grows by alpha opx(x) opy(y), an n x n product of inner size k; diag 'U': without the diagonal.
 */
static void OF(add_triangle_of_product)(char uplo, char diag, char opx, char opy, int n, int k, SCALAR alpha,
                                        const SCALAR *x, int ldx, const SCALAR *y, int ldy, SCALAR *abar, int lda) {
  int ld = je_at_least_one(n);
  SCALAR *t = OF(new)((index_t)ld * n);
  OF(fill_part)('A', 0, n, n, 0, t, ld);
  OF(product)(opx, opy, n, n, k, alpha, x, ldx, y, ldy, t, ld);
  OF(add_part)(uplo, diag == 'U', n, n, 1, t, ld, abar, lda);
  free(t);
}

/* The triangle of abar grows by what the full matrix alpha x y^T gives to the entries that stand for two, (i, j) and
   (j, i); the diagonal stands for one. x and y are n x k, or k x n if op is 'T'. */
static void OF(add_symmetric_product)(char uplo, char op, int n, int k, SCALAR alpha, const SCALAR *x, int ldx,
                                      const SCALAR *y, int ldy, SCALAR *abar, int lda) {
  BLAS(syr2k)(&uplo, &op, &n, &k, &alpha, x, &ldx, y, &ldy, &OF(one), abar, &lda);
  for (int i = 0; i < n; i++) {
    SCALAR twice = op == 'N' ? OF(plain_dot)(k, x + i, ldx, y + i, ldy)
                             : OF(plain_dot)(k, x + (index_t)i * ldx, 1, y + (index_t)i * ldy, 1);
    abar[i + (index_t)i * lda] -= alpha * twice;
  }
}

/* y += alpha op(a) x, where a is m x n. */
static void OF(add_matrix_vector)(char op, int m, int n, SCALAR alpha, const SCALAR *a, int lda, const SCALAR *x,
                                  int incx, SCALAR *y, int incy) {
  if (op != 'R') {
    BLAS(gemv)(&op, &m, &n, &alpha, a, &lda, x, &incx, &OF(one), y, &incy);
    return;
  }
  SCALAR factor = CONJ(alpha);
  const SCALAR *u = OF(conjugate_of_vector)(n, x, &incx);
  OF(conjugate)(m, y, incy);
  BLAS(gemv)(&je_as_it_is, &m, &n, &factor, a, &lda, u, &incx, &OF(one), y, &incy);
  OF(conjugate)(m, y, incy);
  OF(release)(u);
}

/* a += alpha opu(u) opv(v): u is a column, as it is (N) or conjugated (R), v a row, transposed (T) or conjugated too
 * (C). */
static void OF(add_outer)(int m, int n, SCALAR alpha, char opu, const SCALAR *u, int incu, char opv, const SCALAR *v,
                          int incv, SCALAR *a, int lda) {
#ifdef COMPLEX
  const SCALAR *column = opu == 'R' ? OF(conjugate_of_vector)(m, u, &incu) : u;
  if (opv == 'T')
    BLAS(geru)(&m, &n, &alpha, column, &incu, v, &incv, a, &lda);
  else
    BLAS(gerc)(&m, &n, &alpha, column, &incu, v, &incv, a, &lda);
  if (opu == 'R') OF(release)(column);
#else
  (void)opu, (void)opv;
  BLAS(ger)(&m, &n, &alpha, u, &incu, v, &incv, a, &lda);
#endif
}

/* The triangle of a grows by alpha u v^T, of contiguous vectors; strict: without the diagonal. */
static void OF(add_outer_triangle)(char uplo, int strict, int n, SCALAR alpha, const SCALAR *u, const SCALAR *v,
                                   SCALAR *a, int lda) {
  for (int j = 0; j < n; j++) {
    int first = je_first_row(uplo, strict, j), count = je_last_row(uplo, strict, j, n) - first;
    SCALAR factor = alpha * v[j];
    if (count > 0) BLAS(axpy)(&count, &factor, u + first, &je_one_int, a + first + (index_t)j * lda, &je_one_int);
  }
}

/* sx += sign op(da) x, where da is the tangent of a triangular matrix: its diagonal is zero if that of a is one. */
static void OF(add_tangent_product)(const char *uplo, const char *trans, const char *diag, int n, SCALAR sign,
                                    const SCALAR *da, int lda, const SCALAR *x, int incx, SCALAR *sx) {
  SCALAR *t = OF(new)(n), minus = -sign;
  OF(pack)(n, x, incx, t);
  BLAS(trmv)(uplo, trans, diag, &n, da, &lda, t, &je_one_int);
  BLAS(axpy)(&n, &sign, t, &je_one_int, sx, &incx);
  if (je_upper(diag) == 'U') BLAS(axpy)(&n, &minus, x, &incx, sx, &incx);
  free(t);
}

/* Many routines of complex numbers have room for real ones, and a shadow of it. */
#ifdef COMPLEX
#define ROOM , REAL *rwork
#define ROOM_ARGUMENT , rwork
#define ROOM_TYPE , REAL *
#define RWORK , REAL *srwork
#define SRWORK srwork
#else
#define ROOM
#define ROOM_ARGUMENT
#define ROOM_TYPE
#define RWORK
#define SRWORK ((REAL *)0)
#endif

static REAL *OF(new_reals)(index_t count) { return malloc((unsigned long)(count > 0 ? count : 1) * sizeof(REAL)); }

static void OF(forget_work)(SCALAR *swork, REAL *srwork) {
  if (swork) *swork = 0;
  if (srwork) *srwork = 0;
}
