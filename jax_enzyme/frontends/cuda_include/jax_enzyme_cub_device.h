// What host functions ask a whole device for, of CUB: one thread sums in order. The first call of each asks for the size
// of its memory; there is none.
#pragma once
#include <algorithm>

namespace cub {

#define __JE_ASKED(memory, bytes) \
  if (!memory) {                  \
    bytes = 1;                    \
    return cudaSuccess;           \
  }

template <class I, class O, class F, class T>
__attribute__((global)) void __je_reduce_all(I from, O to, int n, F combined, T initial) {
  T total = initial;
  for (int i = 0; i < n; i++) total = combined(total, (T)from[i]);
  *to = total;
}
template <class I, class O, class F, class T>
__attribute__((global)) void __je_scan_all(I from, O to, int n, F combined, T initial, bool has_initial, bool inclusive) {
  T total = initial;
  for (int i = 0; i < n; i++) {
    T value = from[i], next = i || has_initial ? combined(total, value) : value;
    to[i] = inclusive ? next : total;
    total = next;
  }
}

struct DeviceReduce {
  template <class I, class O, class F, class T>
  static cudaError_t Reduce(void *memory, size_t &bytes, I from, O to, int n, F combined, T initial, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_reduce_all<<<1, 1>>>(from, to, n, combined, initial);
    return cudaSuccess;
  }
  template <class I, class O>
  static cudaError_t Sum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    typedef std::decay_t<decltype(*from)> T;
    return Reduce(memory, bytes, from, to, n, cub::Sum(), T());
  }
  template <class I, class O>
  static cudaError_t Max(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    typedef std::decay_t<decltype(*from)> T;
    return Reduce(memory, bytes, from, to, n, cub::Max(), std::numeric_limits<T>::lowest());
  }
  template <class I, class O>
  static cudaError_t Min(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    typedef std::decay_t<decltype(*from)> T;
    return Reduce(memory, bytes, from, to, n, cub::Min(), std::numeric_limits<T>::max());
  }
};

struct DeviceScan {
  template <class I, class O, class F, class T>
  static cudaError_t ExclusiveScan(void *memory, size_t &bytes, I from, O to, F combined, T initial, int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_scan_all<<<1, 1>>>(from, to, n, combined, initial, true, false);
    return cudaSuccess;
  }
  template <class I, class O, class F>
  static cudaError_t InclusiveScan(void *memory, size_t &bytes, I from, O to, F combined, int n, cudaStream_t = 0) {
    typedef std::decay_t<decltype(*from)> T;
    __JE_ASKED(memory, bytes)
    __je_scan_all<<<1, 1>>>(from, to, n, combined, T(), false, true);
    return cudaSuccess;
  }
  template <class I, class O>
  static cudaError_t ExclusiveSum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    typedef std::decay_t<decltype(*from)> T;
    return ExclusiveScan(memory, bytes, from, to, cub::Sum(), T(), n);
  }
  template <class I, class O>
  static cudaError_t InclusiveSum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return InclusiveScan(memory, bytes, from, to, cub::Sum(), n);
  }
};
#undef __JE_ASKED

} // namespace cub
