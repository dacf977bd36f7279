// Numba's calls of LAPACK, under the names by which its code calls them. Each returns `info`.
// provides: numba_xx(getrf|potrf) numba_ez_xxgetri numba_xgesv
#include "numba_kinds.h"

#define DECLARE(T, l)                                                                                               \
  extern "C" void l##getrf_(const int *, const int *, T *, const int *, int *, int *);                              \
  extern "C" void l##getrs_(const char *, const int *, const int *, const T *, const int *, const int *, T *,       \
                            const int *, int *);                                                                    \
  extern "C" void l##potrf_(const char *, const int *, T *, const int *, int *);                                    \
  extern "C" void l##gesv_(const int *, const int *, T *, const int *, int *, T *, const int *, int *);             \
  static inline void getrf(const int *m, const int *n, T *a, const int *lda, int *pivots, int *info) {              \
    l##getrf_(m, n, a, lda, pivots, info);                                                                          \
  }                                                                                                                 \
  static inline void getrs(const int *n, const T *a, const int *lda, const int *pivots, T *b, int *info) {          \
    l##getrs_("N", n, n, a, lda, pivots, b, n, info);                                                               \
  }                                                                                                                 \
  static inline void potrf(const char *part, const int *n, T *a, const int *lda, int *info) {                       \
    l##potrf_(part, n, a, lda, info);                                                                               \
  }                                                                                                                 \
  static inline void gesv(const int *n, const int *count, T *a, const int *lda, int *pivots, T *b, const int *ldb,  \
                          int *info) {                                                                              \
    l##gesv_(n, count, a, lda, pivots, b, ldb, info);                                                               \
  }
EACH_KIND(DECLARE)

extern "C" {

int numba_xxgetrf(char kind, i64 m, i64 n, void *a, i64 lda, int *pivots) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    int info;
    getrf(&rows, &columns, static_cast<decltype(number) *>(a), &leading, pivots, &info);
    return info;
  });
}

// The inverse, by solving for the columns of the identity: getri has no rule.
int numba_ez_xxgetri(char kind, i64 n, void *a, i64 lda, int *pivots) {
  const int order = static_cast<int>(n), leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    T *const factors = static_cast<T *>(a), *const inverse = static_cast<T *>(__builtin_calloc(n * n + 1, sizeof(T)));
    for (i64 i = 0; i < n; ++i) inverse[i * n + i] = 1;
    int info;
    getrs(&order, factors, &leading, pivots, inverse, &info);
    for (i64 j = 0; j < n; ++j)
      for (i64 i = 0; i < n; ++i) factors[j * lda + i] = inverse[j * n + i];
    __builtin_free(inverse);
    return info;
  });
}

int numba_xxpotrf(char kind, char part, i64 n, void *a, i64 lda) {
  const int order = static_cast<int>(n), leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    int info;
    potrf(&part, &order, static_cast<decltype(number) *>(a), &leading, &info);
    return info;
  });
}

int numba_xgesv(char kind, i64 n, i64 count, void *a, i64 lda, int *pivots, void *b, i64 ldb) {
  const int order = static_cast<int>(n), columns = static_cast<int>(count);
  const int of_a = static_cast<int>(lda), of_b = static_cast<int>(ldb);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    int info;
    gesv(&order, &columns, static_cast<T *>(a), &of_a, pivots, static_cast<T *>(b), &of_b, &info);
    return info;
  });
}

}  // extern "C"
