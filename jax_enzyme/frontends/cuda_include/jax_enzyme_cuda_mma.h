// Products of small matrices by a warp, by their definition. A lane has a row of the first matrix, a column of the
// second, and some elements of one column of the sum; where a matrix has fewer rows or columns than a warp has lanes,
// several lanes have the same. Sums of half precision are rounded once.
#pragma once
#include "jax_enzyme_cuda.h"

#define __JE_MEMBER __attribute__((device, always_inline)) inline

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
} // namespace precision

template <class T> struct __je_element { typedef T type; };
template <> struct __je_element<precision::tf32> { typedef float type; };
// What products of two elements are summed in.
template <class T> struct __je_sum { typedef T type; };
template <> struct __je_sum<__half> { typedef float type; };
template <> struct __je_sum<__nv_bfloat16> { typedef float type; };

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment;

#define __JE_FRAGMENT(use, count, extent, strided)                                                          \
  template <int M, int N, int K, class T, class Layout> struct fragment<use, M, N, K, T, Layout> {          \
    typedef typename __je_element<T>::type element_type, storage_element_type;                              \
    static constexpr int num_elements = count, num_storage_elements = count;                                \
    element_type x[count];                                                                                  \
    /* Where element `i` of this lane is. */                                                                \
    __JE_MEMBER static size_t __je_place(int i, unsigned ldm) {                                                           \
      size_t line = __je_lane() % extent, at = i;                                                           \
      return std::is_same<Layout, strided>::value ? line * ldm + at : at * ldm + line;                      \
    }                                                                                                       \
  };
__JE_FRAGMENT(matrix_a, K, M, row_major)
__JE_FRAGMENT(matrix_b, K, N, col_major)
#undef __JE_FRAGMENT

template <int M, int N, int K, class T> struct fragment<accumulator, M, N, K, T, void> {
  typedef T element_type, storage_element_type;
  static constexpr int num_elements = M * N / 32, num_storage_elements = num_elements;
  T x[num_elements];
  __JE_MEMBER static int __je_row(int i) { return __je_lane() / N + i * (32 / N); }
  __JE_MEMBER static size_t __je_place(int i, unsigned ldm, layout_t layout) {
    size_t row = __je_row(i), column = __je_lane() % N;
    return layout == mem_row_major ? row * ldm + column : column * ldm + row;
  }
};

template <class Use, int M, int N, int K, class T, class L, class V>
__JE void fill_fragment(fragment<Use, M, N, K, T, L> &f, const V &value) {
  for (int i = 0; i < f.num_elements; i++) f.x[i] = value;
}
template <class Use, int M, int N, int K, class T, class L, class P>
__JE void load_matrix_sync(fragment<Use, M, N, K, T, L> &f, const P *from, unsigned ldm) {
  __syncwarp();
  for (int i = 0; i < f.num_elements; i++) f.x[i] = from[f.__je_place(i, ldm)];
}
template <int M, int N, int K, class T>
__JE void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *from, unsigned ldm, layout_t layout) {
  __syncwarp();
  for (int i = 0; i < f.num_elements; i++) f.x[i] = from[f.__je_place(i, ldm, layout)];
}
template <int M, int N, int K, class T>
__JE void store_matrix_sync(T *to, const fragment<accumulator, M, N, K, T> &f, unsigned ldm, layout_t layout) {
  for (int i = 0; i < f.num_elements; i++) to[f.__je_place(i, ldm, layout)] = f.x[i];
  __syncwarp();
}

// Rows of the first matrix go through shared memory, from the lanes that have them to those that need them.
template <int M, int N, int K, class A, class LA, class LB, class C, class D>
__JE void mma_sync(fragment<accumulator, M, N, K, D> &d, const fragment<matrix_a, M, N, K, A, LA> &a,
                   const fragment<matrix_b, M, N, K, A, LB> &b, const fragment<accumulator, M, N, K, C> &c,
                   bool = false) {
  typedef typename __je_element<A>::type T;
  typedef typename __je_sum<D>::type Sum;
  __shared__ T rows[32][M][K];
  int warp = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32, lane = __je_lane();
  __syncwarp();
  if (lane < M)
    for (int k = 0; k < K; k++) rows[warp][lane][k] = a.x[k];
  __syncwarp();
  for (int i = 0; i < d.num_elements; i++) {
    Sum sum = (Sum)c.x[i];
    int row = d.__je_row(i);
    for (int k = 0; k < K; k++) sum += (Sum)rows[warp][row][k] * (Sum)b.x[k];
    d.x[i] = (D)sum;
  }
}

// To 10 bits of fraction, ties away from zero. What is left of the 24 bits is an integer, so that the derivative is 1.
__JE float __float_to_tf32(float value) {
  if (!(fabsf(value) <= FLT_MAX)) return value;
  int exponent, bits = (int)(frexpf(value, &exponent) * 0x1p24f), half = bits < 0 ? -0x1000 : 0x1000;
  return value - ldexpf((float)(bits - (bits + half) / 0x2000 * 0x2000), exponent - 24);
}

} // namespace wmma
} // namespace nvcuda
