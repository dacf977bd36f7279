// Reductions and products of arrays in Fortran, under the names by which flang calls them where it does not inline them.
// provides: _FortranA(Sum|Product|Maxval|Minval)(Real[48]|Integer[1248]|Dim) _FortranACpp(Sum|Product)Complex[48]
// provides: _FortranA(All|Any|Count|Parity)(Dim)? _FortranA(Maxloc|Minloc)(Real[48]|Integer[48]|Dim)
// provides: _FortranAFindloc(Dim)? _FortranADotProduct(Real[48]|Integer[48]) _FortranACppDotProductComplex[48]
// provides: _FortranAMatmul(Transpose)?(Direct)?(Real4Real4|Real8Real8|Complex4Complex4|Complex8Complex8|Integer4Integer4)?
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int
#define MASKED const char *, int, int, const Descriptor *mask

namespace {

template <class T> Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
template <class T> T conjugate(T a) { return a; }

template <class T> T one(T) { return T(1); }
template <class T> Complex<T> one(Complex<T>) { return {T(1), T(0)}; }

struct Sum {
  template <class T> T start(T) const { return T{}; }
  template <class T> T operator()(T a, T b) const { return a + b; }
};
struct Product {
  template <class T> T start(T t) const { return one(t); }
  template <class T> T operator()(T a, T b) const { return a * b; }
};
template <class T> T greatest(T) { return T(~(u64(1) << (8 * sizeof(T) - 1))); }
inline float greatest(float) { return __FLT_MAX__; }
inline double greatest(double) { return __DBL_MAX__; }
struct Max {
  template <class T> T start(T t) const { return T(-greatest(t) - (T(0.5) == T(0))); }
  template <class T> T operator()(T a, T b) const { return b > a ? b : a; }
};
struct Min {
  template <class T> T start(T t) const { return greatest(t); }
  template <class T> T operator()(T a, T b) const { return b < a ? b : a; }
};

template <class T, class Op> T reduce(const Descriptor &x, const Descriptor *mask, Op op) {
  T result = op.start(T{});
  each(extents(x), [&](const Index &i) {
    if (chosen(mask, i)) result = op(result, element<T>(x, i));
  });
  return result;
}

template <class T, class Op>
void reduce_lines(Descriptor &result, const Descriptor &x, int dim, const Descriptor *mask, Op op) {
  const i64 length = extent_of(extents(x), dim);
  lines(x, dim, [&](const Index &line, const Index &target) {
    T total = op.start(T{});
    for (i64 k = 0; k < length; ++k) {
      const Index i = with(line, dim, k);
      if (chosen(mask, i)) total = op(total, element<T>(x, i));
    }
    element<T>(result, target) = total;
  });
}

bool truth(const Descriptor &x, const Index &i) { return integer(address(x, i), x.bytes) != 0; }

template <class Better>
void locate(Descriptor &result, const Descriptor &x, int kind, const Descriptor *mask, bool back, Better better) {
  make(result, kind == 8 ? 10 : 9, kind, 1, {{x.rank, 1, 1, 1, 1, 1, 1}});
  Index best = {};
  bool found = false;
  each(extents(x), [&](const Index &i) {
    if (chosen(mask, i) && better(i, best, found, back)) {
      best = i;
      found = true;
    }
  });
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < x.rank) set_integer(result.base + k * kind, kind, found ? best.at[k] + 1 : 0);
}

template <class Better>
void locate_lines(Descriptor &result, const Descriptor &x, int kind, int dim, const Descriptor *mask, bool back,
                  Better better) {
  const i64 length = extent_of(extents(x), dim);
  make(result, kind == 8 ? 10 : 9, kind, x.rank - 1, without_dimension(x, dim));
  lines(x, dim, [&](const Index &line, const Index &target) {
    i64 best = -1;
    for (i64 k = 0; k < length; ++k) {
      const Index i = with(line, dim, k);
      if (chosen(mask, i) && better(i, with(line, dim, best), best >= 0, back)) best = k;
    }
    set_integer(address(result, target), kind, best + 1);
  });
}

template <class T, bool kGreater> auto better(const Descriptor &x) {
  return [&x](const Index &i, const Index &best, bool found, bool back) {
    if (!found) return true;
    const T value = element<T>(x, i), known = element<T>(x, best);
    return kGreater ? value > known || (back && value == known) : value < known || (back && value == known);
  };
}

auto equal(const Descriptor &x, const Descriptor &target) {
  return [&](const Index &i, const Index &, bool found, bool back) {
    bool same = false;
    if (!found || back) with_number(x, [&](auto t) {
      using T = decltype(t);
      const T &a = element<T>(x, i), &b = *reinterpret_cast<const T *>(target.base);
      if constexpr (requires { a.re; }) same = a.re == b.re && a.im == b.im;
      else same = a == b;
    });
    return same;
  };
}

template <class T> T dot(const Descriptor &x, const Descriptor &y) {
  T sum = {};
  for (i64 i = 0; i < x.dim(0).extent; ++i) sum = sum + conjugate(element<T>(x, i)) * element<T>(y, i);
  return sum;
}

// Products of a matrix (`kTransposed`: its transpose) or row with a matrix or column.
template <class T, bool kTransposed> void multiply(const Descriptor &result, const Descriptor &a, const Descriptor &b) {
  auto left = [&](i64 i, i64 k) { return kTransposed ? element<T>(a, k, i) : element<T>(a, i, k); };
  const i64 inner = b.dim(0).extent;
  if (a.rank == 2 && b.rank == 2) {
    const i64 rows = a.dim(kTransposed ? 1 : 0).extent, columns = b.dim(1).extent;
    for (i64 j = 0; j < columns; ++j)
      for (i64 i = 0; i < rows; ++i) {
        T sum = {};
        for (i64 k = 0; k < inner; ++k) sum = sum + left(i, k) * element<T>(b, k, j);
        element<T>(result, i, j) = sum;
      }
  } else if (a.rank == 2) {
    const i64 rows = a.dim(kTransposed ? 1 : 0).extent;
    for (i64 i = 0; i < rows; ++i) {
      T sum = {};
      for (i64 k = 0; k < inner; ++k) sum = sum + left(i, k) * element<T>(b, k);
      element<T>(result, i) = sum;
    }
  } else {
    const i64 columns = b.dim(1).extent;
    for (i64 j = 0; j < columns; ++j) {
      T sum = {};
      for (i64 k = 0; k < inner; ++k) sum = sum + element<T>(a, k) * element<T>(b, k, j);
      element<T>(result, j) = sum;
    }
  }
}

template <bool kTransposed> void multiply_any(const Descriptor &result, const Descriptor &a, const Descriptor &b) {
  if (a.code != b.code) fail("MATMUL of different types");
  with_number(a, [&](auto t) { multiply<decltype(t), kTransposed>(result, a, b); });
}

template <bool kTransposed> void make_product(Descriptor &result, const Descriptor &a, const Descriptor &b) {
  const i64 rows = a.dim(kTransposed ? 1 : 0).extent;
  if (a.rank == 2 && b.rank == 2) make_like(result, a, 2, {{rows, b.dim(1).extent, 1, 1, 1, 1, 1}});
  else if (a.rank == 2) make_like(result, a, 1, {{rows, 1, 1, 1, 1, 1, 1}});
  else make_like(result, a, 1, {{b.dim(1).extent, 1, 1, 1, 1, 1, 1}});
}

}  // namespace

extern "C" {

#define REDUCTIONS(SUFFIX, T)                                                                                  \
  T _FortranASum##SUFFIX(const Descriptor &x, MASKED) { return reduce<T>(x, mask, Sum()); }                    \
  T _FortranAProduct##SUFFIX(const Descriptor &x, MASKED) { return reduce<T>(x, mask, Product()); }            \
  T _FortranAMaxval##SUFFIX(const Descriptor &x, MASKED) { return reduce<T>(x, mask, Max()); }                 \
  T _FortranAMinval##SUFFIX(const Descriptor &x, MASKED) { return reduce<T>(x, mask, Min()); }
REDUCTIONS(Real4, float)
REDUCTIONS(Real8, double)
REDUCTIONS(Integer1, i8)
REDUCTIONS(Integer2, i16)
REDUCTIONS(Integer4, i32)
REDUCTIONS(Integer8, i64)

#define COMPLEX_REDUCTIONS(KIND, T)                                                                            \
  void _FortranACppSumComplex##KIND(Complex<T> &r, const Descriptor &x, MASKED) {                              \
    r = reduce<Complex<T>>(x, mask, Sum());                                                                    \
  }                                                                                                            \
  void _FortranACppProductComplex##KIND(Complex<T> &r, const Descriptor &x, MASKED) {                          \
    r = reduce<Complex<T>>(x, mask, Product());                                                                \
  }                                                                                                            \
  void _FortranACppDotProductComplex##KIND(Complex<T> &r, const Descriptor &x, const Descriptor &y, LOCATION) { \
    r = dot<Complex<T>>(x, y);                                                                                 \
  }
COMPLEX_REDUCTIONS(4, float)
COMPLEX_REDUCTIONS(8, double)

#define ALONG_DIMENSION(NAME, OP)                                                                              \
  void _FortranA##NAME##Dim(Descriptor &r, const Descriptor &x, i32 dim, LOCATION, const Descriptor *mask) {   \
    make_like(r, x, x.rank - 1, without_dimension(x, dim - 1));                                                \
    with_number(x, [&](auto t) { OP });                                                                        \
  }
ALONG_DIMENSION(Sum, reduce_lines<decltype(t)>(r, x, dim - 1, mask, Sum());)
ALONG_DIMENSION(Product, reduce_lines<decltype(t)>(r, x, dim - 1, mask, Product());)
ALONG_DIMENSION(
    Maxval, if constexpr (!requires { t.re; }) reduce_lines<decltype(t)>(r, x, dim - 1, mask, Max());)
ALONG_DIMENSION(
    Minval, if constexpr (!requires { t.re; }) reduce_lines<decltype(t)>(r, x, dim - 1, mask, Min());)

bool _FortranAAll(const Descriptor &x, LOCATION, int) {
  bool result = true;
  each(extents(x), [&](const Index &i) { result = result && truth(x, i); });
  return result;
}

bool _FortranAAny(const Descriptor &x, LOCATION, int) {
  bool result = false;
  each(extents(x), [&](const Index &i) { result = result || truth(x, i); });
  return result;
}

i64 _FortranACount(const Descriptor &x, LOCATION, int) {
  i64 result = 0;
  each(extents(x), [&](const Index &i) { result += truth(x, i); });
  return result;
}

bool _FortranAParity(const Descriptor &x, LOCATION, int) { return _FortranACount(x, "", 0, 0) & 1; }

#define TRUTHS_ALONG_DIMENSION(NAME, PARAMETERS, CODE, BYTES, START, STEP)                                     \
  void _FortranA##NAME##Dim PARAMETERS {                                                                       \
    make(r, CODE, BYTES, x.rank - 1, without_dimension(x, dim - 1));                                           \
    const i64 length = extent_of(extents(x), dim - 1);                                                         \
    lines(x, dim - 1, [&](const Index &line, const Index &target) {                                            \
      i64 total = START;                                                                                       \
      for (i64 k = 0; k < length; ++k) {                                                                       \
        const bool here = truth(x, with(line, dim - 1, k));                                                    \
        STEP;                                                                                                  \
      }                                                                                                        \
      set_integer(address(r, target), r.bytes, total);                                                         \
    });                                                                                                        \
  }
#define PLAIN (Descriptor & r, const Descriptor &x, int dim, LOCATION)
TRUTHS_ALONG_DIMENSION(All, PLAIN, x.code, x.bytes, 1, total = total && here)
TRUTHS_ALONG_DIMENSION(Any, PLAIN, x.code, x.bytes, 0, total = total || here)
TRUTHS_ALONG_DIMENSION(Parity, PLAIN, x.code, x.bytes, 0, total = total != here)
TRUTHS_ALONG_DIMENSION(Count, (Descriptor & r, const Descriptor &x, int dim, int kind, LOCATION), kind == 8 ? 10 : 9,
                       kind, 0, total += here)

#define LOCATIONS(NAME, SUFFIX, T, GREATER)                                                                    \
  void _FortranA##NAME##SUFFIX(Descriptor &r, const Descriptor &x, int kind, LOCATION, const Descriptor *mask, \
                               bool back) {                                                                    \
    locate(r, x, kind, mask, back, better<T, GREATER>(x));                                                     \
  }
#define LOCATIONS_OF_TYPES(NAME, GREATER)                                                                      \
  LOCATIONS(NAME, Real4, float, GREATER)                                                                       \
  LOCATIONS(NAME, Real8, double, GREATER)                                                                      \
  LOCATIONS(NAME, Integer4, i32, GREATER)                                                                      \
  LOCATIONS(NAME, Integer8, i64, GREATER)                                                                      \
  void _FortranA##NAME##Dim(Descriptor &r, const Descriptor &x, int kind, int dim, LOCATION,                   \
                            const Descriptor *mask, bool back) {                                               \
    with_number(x, [&](auto t) {                                                                               \
      if constexpr (!requires { t.re; })                                                                       \
        locate_lines(r, x, kind, dim - 1, mask, back, better<decltype(t), GREATER>(x));                        \
    });                                                                                                        \
  }
LOCATIONS_OF_TYPES(Maxloc, true)
LOCATIONS_OF_TYPES(Minloc, false)

void _FortranAFindloc(Descriptor &r, const Descriptor &x, const Descriptor &target, int kind, LOCATION,
                      const Descriptor *mask, bool back) {
  locate(r, x, kind, mask, back, equal(x, target));
}

void _FortranAFindlocDim(Descriptor &r, const Descriptor &x, const Descriptor &target, int kind, int dim, LOCATION,
                         const Descriptor *mask, bool back) {
  locate_lines(r, x, kind, dim - 1, mask, back, equal(x, target));
}

#define DOT_PRODUCT(SUFFIX, T) \
  T _FortranADotProduct##SUFFIX(const Descriptor &x, const Descriptor &y, LOCATION) { return dot<T>(x, y); }
DOT_PRODUCT(Real4, float)
DOT_PRODUCT(Real8, double)
DOT_PRODUCT(Integer4, i32)
DOT_PRODUCT(Integer8, i64)

#define PRODUCTS(SUFFIX)                                                                                       \
  void _FortranAMatmul##SUFFIX(Descriptor &r, const Descriptor &a, const Descriptor &b, LOCATION) {            \
    make_product<false>(r, a, b);                                                                              \
    multiply_any<false>(r, a, b);                                                                              \
  }                                                                                                            \
  void _FortranAMatmulTranspose##SUFFIX(Descriptor &r, const Descriptor &a, const Descriptor &b, LOCATION) {   \
    make_product<true>(r, a, b);                                                                               \
    multiply_any<true>(r, a, b);                                                                               \
  }                                                                                                            \
  void _FortranAMatmulDirect##SUFFIX(const Descriptor &r, const Descriptor &a, const Descriptor &b, LOCATION) { \
    multiply_any<false>(r, a, b);                                                                              \
  }                                                                                                            \
  void _FortranAMatmulTransposeDirect##SUFFIX(const Descriptor &r, const Descriptor &a, const Descriptor &b,   \
                                              LOCATION) {                                                      \
    multiply_any<true>(r, a, b);                                                                               \
  }
PRODUCTS()
PRODUCTS(Real4Real4)
PRODUCTS(Real8Real8)
PRODUCTS(Complex4Complex4)
PRODUCTS(Complex8Complex8)
PRODUCTS(Integer4Integer4)

}  // extern "C"
