// Numba's calls of LAPACK for decompositions, which ask for their workspace themselves. Each returns `info`.
// provides: numba_ez_(geqrf|xxgqr|gesdd|xxxevd|gelsd)
#include "numba_kinds.h"

namespace {

// The real numbers that go with a kind.
template <class T> struct Real {
  typedef T type;
};
template <> struct Real<ComplexFloat> {
  typedef float type;
};
template <> struct Real<ComplexDouble> {
  typedef double type;
};

template <class T> T *fresh(i64 count) { return static_cast<T *>(__builtin_malloc((count + 1) * sizeof(T))); }

int as_size(float number) { return static_cast<int>(number); }
int as_size(double number) { return static_cast<int>(number); }
int as_size(ComplexFloat number) { return static_cast<int>(__real__ number); }
int as_size(ComplexDouble number) { return static_cast<int>(__real__ number); }

// Calls a routine with its workspace and how long that is: once to ask for the size, once to do the work.
template <class T, class Use> void with_work(Use use) {
  T size = 0;
  int length = -1;
  use(&size, &length);
  length = as_size(size);
  T *const work = fresh<T>(length);
  use(work, &length);
  __builtin_free(work);
}

} // namespace

#define DECLARE(T, l, q)                                                                                               \
  extern "C" void l##geqrf_(const int *, const int *, T *, const int *, T *, T *, const int *, int *);                 \
  extern "C" void q##_(const int *, const int *, const int *, T *, const int *, const T *, T *, const int *, int *);   \
  static inline void geqrf(const int *m, const int *n, T *a, const int *lda, T *tau, T *work, const int *size,         \
                           int *info) {                                                                                \
    l##geqrf_(m, n, a, lda, tau, work, size, info);                                                                    \
  }                                                                                                                    \
  static inline void orgqr(const int *m, const int *n, const int *k, T *a, const int *lda, const T *tau, T *work,      \
                           const int *size, int *info) {                                                               \
    q##_(m, n, k, a, lda, tau, work, size, info);                                                                      \
  }
DECLARE(float, s, sorgqr)
DECLARE(double, d, dorgqr)
DECLARE(ComplexFloat, c, cungqr)
DECLARE(ComplexDouble, z, zungqr)

// Complex routines have one more workspace, of real numbers.
#define DECLARE_REAL(T, l)                                                                                             \
  extern "C" void l##syevd_(const char *, const char *, const int *, T *, const int *, T *, T *, const int *, int *,   \
                            const int *, int *);                                                                       \
  extern "C" void l##gesdd_(const char *, const int *, const int *, T *, const int *, T *, T *, const int *, T *,      \
                            const int *, T *, const int *, int *, int *);                                              \
  static int evd(const char *job, const char *part, const int *n, T *a, const int *lda, T *w) {                        \
    int info = 0, room = 3 + 5 * *n;                                                                                   \
    int *const counts = fresh<int>(room);                                                                              \
    with_work<T>(                                                                                                      \
        [&](T *work, const int *size) { l##syevd_(job, part, n, a, lda, w, work, size, counts, &room, &info); });      \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }                                                                                                                    \
  static int svd(const char *job, const int *m, const int *n, T *a, const int *lda, T *s, T *u, const int *ldu, T *vt, \
                 const int *ldvt) {                                                                                    \
    int info = 0;                                                                                                      \
    int *const counts = fresh<int>(8 * (*m < *n ? *m : *n));                                                           \
    with_work<T>([&](T *work, const int *size) {                                                                       \
      l##gesdd_(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, counts, &info);                                    \
    });                                                                                                                \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }
DECLARE_REAL(float, s)
DECLARE_REAL(double, d)

#define DECLARE_SQUARES(T, l)                                                                                          \
  extern "C" void l##gelsd_(const int *, const int *, const int *, T *, const int *, T *, const int *, T *, const T *, \
                            int *, T *, const int *, int *, int *);                                                    \
  static int squares(const int *m, const int *n, const int *count, T *a, const int *lda, T *b, const int *ldb, T *s,   \
                     T bound, int *rank) {                                                                             \
    int info = 0, room = 0, none = -1;                                                                                 \
    T size = 0;                                                                                                        \
    l##gelsd_(m, n, count, a, lda, b, ldb, s, &bound, rank, &size, &none, &room, &info);                               \
    int length = as_size(size), *const counts = fresh<int>(room);                                                      \
    T *const work = fresh<T>(length);                                                                                  \
    l##gelsd_(m, n, count, a, lda, b, ldb, s, &bound, rank, work, &length, counts, &info);                             \
    __builtin_free(work);                                                                                              \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }
DECLARE_SQUARES(float, s)
DECLARE_SQUARES(double, d)

#define DECLARE_COMPLEX(T, R, l)                                                                                       \
  extern "C" void l##heevd_(const char *, const char *, const int *, T *, const int *, R *, T *, const int *, R *,     \
                            const int *, int *, const int *, int *);                                                   \
  extern "C" void l##gesdd_(const char *, const int *, const int *, T *, const int *, R *, T *, const int *, T *,      \
                            const int *, T *, const int *, R *, int *, int *);                                         \
  static int evd(const char *job, const char *part, const int *n, T *a, const int *lda, R *w) {                        \
    int info = 0, room = 3 + 5 * *n, more = 1 + 5 * *n + 2 * *n * *n;                                                  \
    int *const counts = fresh<int>(room);                                                                              \
    R *const numbers = fresh<R>(more);                                                                                 \
    with_work<T>([&](T *work, const int *size) {                                                                       \
      l##heevd_(job, part, n, a, lda, w, work, size, numbers, &more, counts, &room, &info);                            \
    });                                                                                                                \
    __builtin_free(numbers);                                                                                           \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }                                                                                                                    \
  static int svd(const char *job, const int *m, const int *n, T *a, const int *lda, R *s, T *u, const int *ldu, T *vt, \
                 const int *ldvt) {                                                                                    \
    int info = 0, few = *m < *n ? *m : *n, most = *m < *n ? *n : *m;                                                   \
    int *const counts = fresh<int>(8 * few);                                                                           \
    R *const numbers = fresh<R>(static_cast<i64>(few) * (5 * few + 7 + 2 * most + 2 * few + 1));                       \
    with_work<T>([&](T *work, const int *size) {                                                                       \
      l##gesdd_(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, numbers, counts, &info);                           \
    });                                                                                                                \
    __builtin_free(numbers);                                                                                           \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }
DECLARE_COMPLEX(ComplexFloat, float, c)
DECLARE_COMPLEX(ComplexDouble, double, z)

#define DECLARE_COMPLEX_SQUARES(T, R, l)                                                                               \
  extern "C" void l##gelsd_(const int *, const int *, const int *, T *, const int *, T *, const int *, R *, const R *, \
                            int *, T *, const int *, R *, int *, int *);                                               \
  static int squares(const int *m, const int *n, const int *count, T *a, const int *lda, T *b, const int *ldb, R *s,   \
                     R bound, int *rank) {                                                                             \
    int info = 0, room = 0, none = -1;                                                                                 \
    T size = 0;                                                                                                        \
    R more = 0;                                                                                                        \
    l##gelsd_(m, n, count, a, lda, b, ldb, s, &bound, rank, &size, &none, &more, &room, &info);                        \
    int length = as_size(size), *const counts = fresh<int>(room);                                                      \
    T *const work = fresh<T>(length);                                                                                  \
    R *const numbers = fresh<R>(as_size(more));                                                                        \
    l##gelsd_(m, n, count, a, lda, b, ldb, s, &bound, rank, work, &length, numbers, counts, &info);                    \
    __builtin_free(numbers);                                                                                           \
    __builtin_free(work);                                                                                              \
    __builtin_free(counts);                                                                                            \
    return info;                                                                                                       \
  }
DECLARE_COMPLEX_SQUARES(ComplexFloat, float, c)
DECLARE_COMPLEX_SQUARES(ComplexDouble, double, z)

extern "C" {

int numba_ez_geqrf(char kind, i64 m, i64 n, void *a, i64 lda, void *tau) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    int info = 0;
    with_work<T>([&](T *work, const int *size) {
      geqrf(&rows, &columns, static_cast<T *>(a), &leading, static_cast<T *>(tau), work, size, &info);
    });
    return info;
  });
}

int numba_ez_xxgqr(char kind, i64 m, i64 n, i64 k, void *a, i64 lda, void *tau) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), count = static_cast<int>(k);
  const int leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    int info = 0;
    with_work<T>([&](T *work, const int *size) {
      orgqr(&rows, &columns, &count, static_cast<T *>(a), &leading, static_cast<T *>(tau), work, size, &info);
    });
    return info;
  });
}

int numba_ez_xxxevd(char kind, char job, char part, i64 n, void *a, i64 lda, void *w) {
  const int order = static_cast<int>(n), leading = static_cast<int>(lda);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    return evd(&job, &part, &order, static_cast<T *>(a), &leading, static_cast<typename Real<T>::type *>(w));
  });
}

int numba_ez_gesdd(char kind, char job, i64 m, i64 n, void *a, i64 lda, void *s, void *u, i64 ldu, void *vt, i64 ldvt) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda);
  const int of_u = static_cast<int>(ldu), of_vt = static_cast<int>(ldvt);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    return svd(&job, &rows, &columns, static_cast<T *>(a), &leading, static_cast<typename Real<T>::type *>(s),
               static_cast<T *>(u), &of_u, static_cast<T *>(vt), &of_vt);
  });
}

int numba_ez_gelsd(char kind, i64 m, i64 n, i64 count, void *a, i64 lda, void *b, i64 ldb, void *s, double bound,
                   int *rank) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), sides = static_cast<int>(count);
  const int of_a = static_cast<int>(lda), of_b = static_cast<int>(ldb);
  return of_kind(kind, [&](auto number) {
    using T = decltype(number);
    using R = typename Real<T>::type;
    return squares(&rows, &columns, &sides, static_cast<T *>(a), &of_a, static_cast<T *>(b), &of_b, static_cast<R *>(s),
                   static_cast<R>(bound), rank);
  });
}

} // extern "C"
