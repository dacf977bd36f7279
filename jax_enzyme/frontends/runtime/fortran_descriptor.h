// How flang describes an array to its run-time library: the C descriptor of Fortran 2018 (18.5.3) with flang's field
// widths. What is here makes loops over such arrays that an optimiser can reduce to what the array's rank needs.
#pragma once

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

// The library is C++ without a library of its own: the compiler's builtins stand for what it calls.
inline void *operator new(decltype(sizeof 0), void *place) noexcept { return place; }

namespace je {

constexpr i32 kVersion = 20240719;
constexpr int kMaxRank = 7;
constexpr u8 kPointer = 1, kAllocatable = 2;
constexpr u8 kHasAddendum = 1;

enum Code : i8 {
  kFloat = 27, kDouble = 28, kFloatComplex = 34, kDoubleComplex = 35,
  kLogical1 = 39, kCharacter = 40, kAddress = 41, kStruct = 42,
};

struct Dimension {
  i64 lower, extent, stride;  // the stride in bytes
};

struct Descriptor {
  char *base;
  i64 bytes;  // of one element
  i32 version;
  u8 rank;
  i8 code;
  u8 attribute;
  u8 extra;

  // The dimensions follow; only `rank` of them are there.
  Dimension &dim(int k) { return reinterpret_cast<Dimension *>(this + 1)[k]; }
  const Dimension &dim(int k) const { return reinterpret_cast<const Dimension *>(this + 1)[k]; }
};

// A descriptor of ours, with room for every dimension.
struct Local : Descriptor {
  Dimension room[kMaxRank];

  Local() = default;
  explicit Local(const Descriptor &other) : Descriptor(other) {
#pragma unroll
    for (int k = 0; k < kMaxRank; ++k)
      if (k < other.rank) room[k] = other.dim(k);
  }
};

template <class T> struct Complex {
  T re, im;
};

// Refused where the engine meets them: no body is anywhere.
extern "C" [[noreturn]] void _FortranAReportFatalUserError(const char *text, const char *file, int line);
[[noreturn, gnu::always_inline]] inline void fail(const char *text) { _FortranAReportFatalUserError(text, "", 0); }

struct Extents {
  i64 at[kMaxRank];
};
using Index = Extents;

inline Extents extents(const Descriptor &d) {
  Extents result;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) result.at[k] = k < d.rank ? d.dim(k).extent : 1;
  if (d.rank > kMaxRank) fail("an array of more than 7 dimensions");
  return result;
}

inline i64 count(const Descriptor &d) {
  const Extents n = extents(d);
  i64 result = 1;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k) result *= n.at[k] > 0 ? n.at[k] : 0;
  return result;
}

// The address of an element; indices count from 0 in every dimension, those beyond the rank are not looked at.
inline char *address(const Descriptor &d, const Index &i) {
  i64 offset = 0;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < d.rank) offset += i.at[k] * d.dim(k).stride;
  return d.base + offset;
}

template <class T> inline T &element(const Descriptor &d, const Index &i) {
  return *reinterpret_cast<T *>(address(d, i));
}

template <class T> inline T &element(const Descriptor &d, i64 i) {
  return *reinterpret_cast<T *>(d.base + i * d.dim(0).stride);
}

template <class T> inline T &element(const Descriptor &d, i64 i, i64 j) {
  return *reinterpret_cast<T *>(d.base + i * d.dim(0).stride + j * d.dim(1).stride);
}

// Calls `f(index)` for every index in array element order.
template <class F> inline void each(const Extents &n, F f) {
  for (i64 i6 = 0; i6 < n.at[6]; ++i6)
    for (i64 i5 = 0; i5 < n.at[5]; ++i5)
      for (i64 i4 = 0; i4 < n.at[4]; ++i4)
        for (i64 i3 = 0; i3 < n.at[3]; ++i3)
          for (i64 i2 = 0; i2 < n.at[2]; ++i2)
            for (i64 i1 = 0; i1 < n.at[1]; ++i1)
              for (i64 i0 = 0; i0 < n.at[0]; ++i0) f(Index{{i0, i1, i2, i3, i4, i5, i6}});
}

// The same with one dimension (from 0) left out: `f` gets the index with 0 there.
template <class F> inline void each_line(Extents n, int dim, F f) {
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k == dim) n.at[k] = 1;
  each(n, f);
}

inline Index with(Index i, int dim, i64 value) {
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k == dim) i.at[k] = value;
  return i;
}

// The index in the array of one dimension less.
inline Index without(const Index &i, int dim) {
  Index result = {};
#pragma unroll
  for (int k = 0; k < kMaxRank - 1; ++k) result.at[k] = i.at[k < dim ? k : k + 1];
  return result;
}

inline i64 extent_of(const Extents &n, int dim) {
  i64 result = 1;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k == dim) result = n.at[k];
  return result;
}

// Calls `f(line, target)` for every line of `x` along `dim`: the index of its start, and the one in the result.
template <class F> inline void lines(const Descriptor &x, int dim, F f) {
  each_line(extents(x), dim, [&](const Index &i) { f(i, without(i, dim)); });
}

inline Extents without_dimension(const Descriptor &x, int dim) {
  Extents n = without(extents(x), dim);
  n.at[kMaxRank - 1] = 1;
  return n;
}

inline i64 integer(const void *p, i64 bytes) {
  switch (bytes) {
  case 1: return *static_cast<const i8 *>(p);
  case 2: return *static_cast<const i16 *>(p);
  case 4: return *static_cast<const i32 *>(p);
  default: return *static_cast<const i64 *>(p);
  }
}

inline void set_integer(void *p, i64 bytes, i64 value) {
  switch (bytes) {
  case 1: *static_cast<i8 *>(p) = static_cast<i8>(value); break;
  case 2: *static_cast<i16 *>(p) = static_cast<i16>(value); break;
  case 4: *static_cast<i32 *>(p) = static_cast<i32>(value); break;
  default: *static_cast<i64 *>(p) = value; break;
  }
}

// A mask is an array of the same shape, a scalar, or absent.
inline bool chosen(const Descriptor *mask, const Index &i) {
  if (!mask || !mask->base) return true;
  return integer(mask->rank ? address(*mask, i) : mask->base, mask->bytes) != 0;
}

// Calls `f(T{})` with the type of the elements of an array of numbers.
template <class F> inline void with_number(const Descriptor &d, F f) {
  switch (d.code) {
  case kFloat: return f(float{});
  case kDouble: return f(double{});
  case kFloatComplex: return f(Complex<float>{});
  case kDoubleComplex: return f(Complex<double>{});
  default: break;
  }
  switch (d.bytes) {
  case 1: return f(i8{});
  case 2: return f(i16{});
  case 4: return f(i32{});
  case 8: return f(i64{});
  default: fail("an element type that is not supported");
  }
}

// The same for two arrays of one type, of which either may be the one that is known.
template <class F> inline void with_number_of_both(const Descriptor &a, const Descriptor &b, F f) {
  with_number(a, [&](auto t) {
    with_number(b, [&](auto u) {
      if constexpr (__is_same(decltype(t), decltype(u)))
        f(t);
      else
        fail("an assignment between types");
    });
  });
}

inline bool is_number(const Descriptor &d) {
  return d.code != kCharacter && d.code != kStruct && d.code != kAddress && d.code > 0;
}

// Copies of one element: as a number of its type where it is one, so that nothing is copied as bare bytes.
inline void copy_element(const Descriptor &type, char *to, const char *from) {
  if (is_number(type))
    with_number(type, [=](auto t) {
      using T = decltype(t);
      *reinterpret_cast<T *>(to) = *reinterpret_cast<const T *>(from);
    });
  else if (type.code == kAddress)
    *reinterpret_cast<void **>(to) = *reinterpret_cast<void *const *>(from);
  else
    __builtin_memcpy(to, from, type.bytes);
}

// Copies all elements, of one type throughout; `source(index)` is where each comes from.
template <class F> inline void copy_all(const Descriptor &to, const Extents &n, F source) {
  if (is_number(to))
    with_number(to, [&](auto t) {
      using T = decltype(t);
      each(n, [&](const Index &i) { element<T>(to, i) = *reinterpret_cast<const T *>(source(i)); });
    });
  else
    each(n, [&](const Index &i) { copy_element(to, address(to, i), source(i)); });
}

inline void set_bounds(Descriptor &d, int rank, const Extents &n) {
  i64 stride = d.bytes;
#pragma unroll
  for (int k = 0; k < kMaxRank; ++k)
    if (k < rank) {
      const i64 extent = n.at[k] > 0 ? n.at[k] : 0;
      d.dim(k) = {1, extent, stride};
      stride *= extent;
    }
}

inline char *new_memory(const Descriptor &d) {
  const i64 bytes = count(d) * d.bytes;
  return static_cast<char *>(__builtin_malloc(bytes ? bytes : 1));
}

// Makes `d` an allocated array of these extents, contiguous, with lower bounds of 1.
inline void make(Descriptor &d, i8 code, i64 bytes, int rank, const Extents &n) {
  d.bytes = bytes;
  d.version = kVersion;
  d.rank = rank;
  d.code = code;
  d.attribute = kAllocatable;
  set_bounds(d, rank, n);
  d.base = new_memory(d);
}

inline void make_like(Descriptor &d, const Descriptor &type, int rank, const Extents &n) {
  make(d, type.code, type.bytes, rank, n);
}

}  // namespace je
