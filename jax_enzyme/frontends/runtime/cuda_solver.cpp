// cuSOLVER on the CPU: calls of LAPACK, whose derivatives are rules. Working memory is LAPACK's own.
// provides: cusolverDn(?:Create|Destroy|SetStream|[SD](?:potrf|potrs|getrf|getrs|geqrf|ormqr|syevd|gesvd)(?:_bufferSize)?)
#include <stddef.h>

extern "C" {

#define DECLARE(l, T)                                                                                                 \
  void l##potrf_(const char *, const int *, T *, const int *, int *);                                                 \
  void l##potrs_(const char *, const int *, const int *, const T *, const int *, T *, const int *, int *);            \
  void l##getrf_(const int *, const int *, T *, const int *, int *, int *);                                           \
  void l##getrs_(const char *, const int *, const int *, const T *, const int *, const int *, T *, const int *, int *); \
  void l##geqrf_(const int *, const int *, T *, const int *, T *, T *, const int *, int *);                           \
  void l##ormqr_(const char *, const char *, const int *, const int *, const int *, const T *, const int *,           \
                 const T *, T *, const int *, T *, const int *, int *);                                               \
  void l##laswp_(const int *, T *, const int *, const int *, const int *, const int *, const int *);                  \
  void l##syevd_(const char *, const char *, const int *, T *, const int *, T *, T *, const int *, int *, const int *,  \
                 int *);                                                                                              \
  void l##gesvd_(const char *, const char *, const int *, const int *, T *, const int *, T *, T *, const int *, T *,  \
                 const int *, T *, const int *, int *);                                                               \
  void l##trsm_(const char *, const char *, const char *, const char *, const int *, const int *, const T *,          \
                const T *, const int *, T *, const int *);
DECLARE(s, float)
DECLARE(d, double)
#undef DECLARE

static const char OPERATIONS[] = "NTC", SIDES[] = "LR", TRIANGLES[] = "LU", JOBS[] = "NV";

int cusolverDnCreate(void **handle) { return *handle = nullptr, 0; }
int cusolverDnDestroy(void *) { return 0; }
int cusolverDnSetStream(void *, void *) { return 0; }

}  // extern "C"
// L and U in one place, as LAPACK leaves them; the number of the first pivot that is zero.
template <class T> static int without_pivots(int m, int n, T *a, int lda) {
  int zero = 0;
  for (int k = 0; k < m && k < n; k++) {
    if (a[(size_t)k * lda + k] == 0 && !zero) zero = k + 1;
    for (int i = k + 1; i < m; i++) {
      a[(size_t)k * lda + i] /= a[(size_t)k * lda + k];
      for (int j = k + 1; j < n; j++) a[(size_t)j * lda + i] -= a[(size_t)k * lda + i] * a[(size_t)j * lda + k];
    }
  }
  return zero;
}
extern "C" {

#define DEFINE(L, l, T)                                                                                               \
  int cusolverDn##L##potrf_bufferSize(void *, int, int, T *, int, int *size) { return *size = 1, 0; }                 \
  int cusolverDn##L##potrf(void *, int triangle, int n, T *a, int lda, T *, int, int *info) {                         \
    return l##potrf_(TRIANGLES + triangle, &n, a, &lda, info), 0;                                                     \
  }                                                                                                                   \
  int cusolverDn##L##potrs(void *, int triangle, int n, int columns, const T *a, int lda, T *b, int ldb, int *info) { \
    return l##potrs_(TRIANGLES + triangle, &n, &columns, a, &lda, b, &ldb, info), 0;                                  \
  }                                                                                                                   \
  int cusolverDn##L##getrf_bufferSize(void *, int, int, T *, int, int *size) { return *size = 1, 0; }                 \
  int cusolverDn##L##getrf(void *, int m, int n, T *a, int lda, T *, int *pivots, int *info) {                        \
    if (pivots) l##getrf_(&m, &n, a, &lda, pivots, info);                                                             \
    else *info = without_pivots(m, n, a, lda);                                                                        \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cusolverDn##L##getrs(void *, int op, int n, int columns, const T *a, int lda, const int *pivots, T *b, int ldb, \
                           int *info) {                                                                               \
    const T one = 1;                                                                                                  \
    *info = 0;                                                                                                        \
    if (pivots) return l##getrs_(OPERATIONS + op, &n, &columns, a, &lda, pivots, b, &ldb, info), 0;                   \
    for (int half = 0; half < 2; half++) {                                                                            \
      bool upper = (half == 0) == (op != 0);                                                                          \
      l##trsm_("L", TRIANGLES + upper, OPERATIONS + op, upper ? "N" : "U", &n, &columns, &one, a, &lda, b, &ldb);     \
    }                                                                                                                 \
    return 0;                                                                                                         \
  }                                                                                                                   \
  int cusolverDn##L##geqrf_bufferSize(void *, int, int n, T *, int, int *size) { return *size = n > 0 ? n : 1, 0; }   \
  int cusolverDn##L##geqrf(void *, int m, int n, T *a, int lda, T *tau, T *work, int size, int *info) {               \
    return l##geqrf_(&m, &n, a, &lda, tau, work, &size, info), 0;                                                     \
  }                                                                                                                   \
  int cusolverDn##L##ormqr_bufferSize(void *, int, int, int m, int n, int, const T *, int, const T *, const T *, int, \
                                      int *size) {                                                                    \
    return *size = m + n, 0;                                                                                          \
  }                                                                                                                   \
  int cusolverDn##L##ormqr(void *, int side, int op, int m, int n, int k, const T *a, int lda, const T *tau, T *c,    \
                           int ldc, T *work, int size, int *info) {                                                   \
    return l##ormqr_(SIDES + side, OPERATIONS + op, &m, &n, &k, a, &lda, tau, c, &ldc, work, &size, info), 0;         \
  }                                                                                                                   \
  int cusolverDn##L##syevd_bufferSize(void *, int, int, int n, const T *, int, const T *, int *size) {                \
    return *size = 1 + 6 * n + 2 * n * n, 0;                                                                          \
  }                                                                                                                   \
  int cusolverDn##L##syevd(void *, int vectors, int part, int n, T *a, int lda, T *w, T *work, int size, int *info) { \
    int room = 3 + 5 * n, *counts = new int[room];                                                                    \
    l##syevd_(JOBS + vectors, TRIANGLES + part, &n, a, &lda, w, work, &size, counts, &room, info);                    \
    return delete[] counts, 0;                                                                                        \
  }                                                                                                                   \
  int cusolverDn##L##gesvd_bufferSize(void *, int m, int n, int *size) { return *size = 5 * (m + n), 0; }             \
  int cusolverDn##L##gesvd(void *, signed char left, signed char right, int m, int n, T *a, int lda, T *s, T *u,      \
                           int ldu, T *v, int ldv, T *work, int size, T *, int *info) {                               \
    const char jobs[] = {static_cast<char>(left), static_cast<char>(right)};                                          \
    return l##gesvd_(jobs, jobs + 1, &m, &n, a, &lda, s, u, &ldu, v, &ldv, work, &size, info), 0;                     \
  }
DEFINE(S, s, float)
DEFINE(D, d, double)

}  // extern "C"
