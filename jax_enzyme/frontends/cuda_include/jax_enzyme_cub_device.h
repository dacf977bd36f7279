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

// What numbers are added up in: the type that an operator makes of the first value and a number, so that a sum of flags
// into integers is one of integers.
#define __JE_TOTAL std::decay_t<decltype(combined(initial, from[0]))>
#define __JE_VALUE(iterator) std::decay_t<decltype(*iterator)>

template <class I, class O, class F, class T>
__attribute__((global)) void __je_reduce_all(I from, O to, int n, F combined, T initial) {
  __JE_TOTAL total = initial;
  for (int i = 0; i < n; i++) total = combined(total, from[i]);
  *to = total;
}
template <class I, class O, class F, class T>
__attribute__((global)) void __je_scan_all(I from, O to, int n, F combined, T initial, bool has_initial, bool inclusive) {
  typedef __JE_TOTAL A;
  A total = initial;
  for (int i = 0; i < n; i++) {
    A next = i || has_initial ? (A)combined(total, from[i]) : (A)from[i];
    to[i] = inclusive ? next : total;
    total = next;
  }
}

// A pair of place and value at `to`.
template <class I, class O, class F> __attribute__((global)) void __je_place_of(I from, O to, int n, F better) {
  KeyValuePair<int, __JE_VALUE(from)> found(0, from[0]);
  for (int i = 1; i < n; i++) found = better(found, decltype(found)(i, from[i]));
  *to = found;
}
template <class K, class U, class V, class O, class N, class F>
__attribute__((global)) void __je_reduce_runs(K keys, U unique, V values, O to, N runs, F combined, int n) {
  int run = -1;
  for (int i = 0; i < n; i++) {
    bool starts = !i || !(keys[i] == keys[i - 1]);
    run += starts;
    if (starts) unique[run] = keys[i], to[run] = values[i];
    else to[run] = combined(to[run], values[i]);
  }
  *runs = run + 1;
}

template <class I, class F> struct __je_made {
  I from;
  F function;
  template <class N> __JE_MEMBER auto operator[](N i) { return function(from[i]); }
};

struct DeviceReduce {
  template <class I, class O, class F, class T>
  static cudaError_t Reduce(void *memory, size_t &bytes, I from, O to, int n, F combined, T initial, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_reduce_all<<<1, 1>>>(from, to, n, combined, initial);
    return cudaSuccess;
  }
  template <class I, class O>
  static cudaError_t Sum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, cub::Sum(), __JE_VALUE(to)());
  }
  template <class I, class O>
  static cudaError_t Max(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, cub::Max(), std::numeric_limits<__JE_VALUE(from)>::lowest());
  }
  template <class I, class O>
  static cudaError_t Min(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, cub::Min(), std::numeric_limits<__JE_VALUE(from)>::max());
  }
  template <class I, class O> static cudaError_t ArgMax(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_place_of<<<1, 1>>>(from, to, n, cub::ArgMax());
    return cudaSuccess;
  }
  template <class I, class O> static cudaError_t ArgMin(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_place_of<<<1, 1>>>(from, to, n, cub::ArgMin());
    return cudaSuccess;
  }
  template <class I, class O, class F, class G, class T>
  static cudaError_t TransformReduce(void *memory, size_t &bytes, I from, O to, int n, F combined, G function, T initial,
                                     cudaStream_t = 0) {
    return Reduce(memory, bytes, __je_made<I, G>{from, function}, to, n, combined, initial);
  }
  template <class K, class U, class V, class O, class N, class F>
  static cudaError_t ReduceByKey(void *memory, size_t &bytes, K keys, U unique, V values, O to, N runs, F combined, int n,
                                 cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_reduce_runs<<<1, 1>>>(keys, unique, values, to, runs, combined, n);
    return cudaSuccess;
  }
};

template <class I, class O, class B, class E, class F, class T>
__attribute__((global)) void __je_reduce_segments(I from, O to, int n, B begins, E ends, F combined, T initial) {
  int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment >= n) return;
  __JE_TOTAL total = initial;
  for (long long i = begins[segment]; i < ends[segment]; i++) total = combined(total, from[i]);
  to[segment] = total;
}
struct DeviceSegmentedReduce {
  template <class I, class O, class B, class E, class F, class T>
  static cudaError_t Reduce(void *memory, size_t &bytes, I from, O to, int n, B begins, E ends, F combined, T initial,
                            cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    if (n > 0) __je_reduce_segments<<<(n + 127) / 128, 128>>>(from, to, n, begins, ends, combined, initial);
    return cudaSuccess;
  }
  template <class I, class O, class B, class E>
  static cudaError_t Sum(void *memory, size_t &bytes, I from, O to, int n, B begins, E ends, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, begins, ends, cub::Sum(), __JE_VALUE(to)());
  }
  template <class I, class O, class B, class E>
  static cudaError_t Max(void *memory, size_t &bytes, I from, O to, int n, B begins, E ends, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, begins, ends, cub::Max(), std::numeric_limits<__JE_VALUE(from)>::lowest());
  }
  template <class I, class O, class B, class E>
  static cudaError_t Min(void *memory, size_t &bytes, I from, O to, int n, B begins, E ends, cudaStream_t = 0) {
    return Reduce(memory, bytes, from, to, n, begins, ends, cub::Min(), std::numeric_limits<__JE_VALUE(from)>::max());
  }
};

// A function for each number or element.
template <class N, class F> __attribute__((global)) void __je_for_all(N n, F function) {
  N i = blockIdx.x * (N)blockDim.x + threadIdx.x;
  if (i < n) function(i);
}
template <class I, class F> struct __je_at_each {
  I from;
  F function;
  template <class N> __JE_MEMBER void operator()(N i) { function(from[i]); }
};
struct DeviceFor {
  template <class N, class F> static cudaError_t Bulk(N n, F function, cudaStream_t = 0) {
    if (n > 0) __je_for_all<<<(n + 127) / 128, 128>>>(n, function);
    return cudaSuccess;
  }
  template <class I, class N, class F> static cudaError_t ForEachN(I from, N n, F function, cudaStream_t = 0) {
    return Bulk(n, __je_at_each<I, F>{from, function});
  }
  template <class I, class F> static cudaError_t ForEach(I first, I last, F function, cudaStream_t = 0) {
    return ForEachN(first, last - first, function);
  }
  template <class N, class F>
  static cudaError_t Bulk(void *memory, size_t &bytes, N n, F function, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    return Bulk(n, function);
  }
  template <class I, class N, class F>
  static cudaError_t ForEachN(void *memory, size_t &bytes, I from, N n, F function, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    return ForEachN(from, n, function);
  }
  template <class I, class F>
  static cudaError_t ForEach(void *memory, size_t &bytes, I first, I last, F function, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    return ForEach(first, last, function);
  }
};
template <class I, class O, class F> struct __je_transformed {
  I from;
  O to;
  F function;
  template <class N> __JE_MEMBER void operator()(N i) { to[i] = function(from[i]); }
};
struct DeviceTransform {
  template <class I, class O, class N, class F>
  static cudaError_t Transform(I from, O to, N n, F function, cudaStream_t = 0) {
    return DeviceFor::Bulk(n, __je_transformed<I, O, F>{from, to, function});
  }
};

template <class I, class U, class C, class N>
__attribute__((global)) void __je_encode_runs(I from, U unique, C lengths, N runs, int n) {
  int run = -1;
  for (int i = 0; i < n; i++) {
    if (!i || !(from[i] == from[i - 1])) unique[++run] = from[i], lengths[run] = 0;
    lengths[run] += 1;
  }
  *runs = run + 1;
}
struct DeviceRunLengthEncode {
  template <class I, class U, class C, class N>
  static cudaError_t Encode(void *memory, size_t &bytes, I from, U unique, C lengths, N runs, int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_encode_runs<<<1, 1>>>(from, unique, lengths, runs, n);
    return cudaSuccess;
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
    __JE_ASKED(memory, bytes)
    __je_scan_all<<<1, 1>>>(from, to, n, combined, __JE_VALUE(from)(), false, true);
    return cudaSuccess;
  }
  template <class I, class O>
  static cudaError_t ExclusiveSum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return ExclusiveScan(memory, bytes, from, to, cub::Sum(), __JE_VALUE(from)(), n);
  }
  template <class I, class O>
  static cudaError_t InclusiveSum(void *memory, size_t &bytes, I from, O to, int n, cudaStream_t = 0) {
    return InclusiveScan(memory, bytes, from, to, cub::Sum(), n);
  }
};

// What is asked for keeps its order. `asked(i)` says whether number i is.
template <class I, class O, class N, class F>
__attribute__((global)) void __je_select_all(I from, O to, N count, long long n, F asked) {
  long long kept = 0;
  for (long long i = 0; i < n; i++)
    if (asked(i)) to[kept++] = from[i];
  *count = kept;
}
template <class I, class F> struct __je_holds {
  I from;
  F holds;
  __JE_MEMBER bool operator()(long long i) const { return holds(from[i]); }
};
template <class I> struct __je_first_of_run {
  I from;
  __JE_MEMBER bool operator()(long long i) const { return !i || !(from[i] == from[i - 1]); }
};
template <class I> struct __je_flag {
  I flags;
  __JE_MEMBER bool operator()(long long i) const { return flags[i]; }
};
struct DeviceSelect {
  template <class I, class O, class N, class F>
  static cudaError_t If(void *memory, size_t &bytes, I from, O to, N count, long long n, F holds, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_select_all<<<1, 1>>>(from, to, count, n, __je_holds<I, F>{from, holds});
    return cudaSuccess;
  }
  template <class I, class M, class O, class N>
  static cudaError_t Flagged(void *memory, size_t &bytes, I from, M flags, O to, N count, long long n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_select_all<<<1, 1>>>(from, to, count, n, __je_flag<M>{flags});
    return cudaSuccess;
  }
  template <class I, class O, class N>
  static cudaError_t Unique(void *memory, size_t &bytes, I from, O to, N count, long long n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_select_all<<<1, 1>>>(from, to, count, n, __je_first_of_run<I>{from});
    return cudaSuccess;
  }
};

// A stable order by merging longer and longer runs: `order` and `other` are n numbers each.
template <class K> struct __je_by_digits {
  bool down, whole;
  int first, end;
  __JE_MEMBER bool operator()(const K &a, const K &b) const {
    if (whole) return down ? __je_before(b, a) : __je_before(a, b);
    unsigned long long x = __je_digits(a, first, end), y = __je_digits(b, first, end);
    return down ? y < x : x < y;
  }
};
template <class K, class F>
__attribute__((global)) void __je_order_all(const K *keys, int *order, int *other, int n, F before) {
  for (int i = 0; i < n; i++) order[i] = i;
  for (long long width = 1; width < n; width *= 2) {
    for (long long start = 0; start < n; start += 2 * width) {
      long long middle = start + width < n ? start + width : n, stop = start + 2 * width < n ? start + 2 * width : n;
      long long a = start, b = middle;
      for (long long to = start; to < stop; to++) {
        bool second = a >= middle || (b < stop && before(keys[order[b]], keys[order[a]]));
        other[to] = order[second ? b++ : a++];
      }
    }
    for (int i = 0; i < n; i++) order[i] = other[i];
  }
}
template <class T> __attribute__((global)) void __je_gather_all(const T *from, T *to, const int *order, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[order[i]];
}

template <class K, class V, class F>
cudaError_t __je_sort_all(void *memory, size_t &bytes, const K *from, K *to, const V *values, V *sorted, int n, F before) {
  __JE_ASKED(memory, bytes)
  if (n <= 0) return cudaSuccess;
  int *order, *other;
  cudaMalloc(&order, n * sizeof(int));
  cudaMalloc(&other, n * sizeof(int));
  __je_order_all<<<1, 1>>>(from, order, other, n, before);
  __je_gather_all<<<(n + 255) / 256, 256>>>(from, to, order, n);
  if (values) __je_gather_all<<<(n + 255) / 256, 256>>>(values, sorted, order, n);
  cudaFree(order);
  cudaFree(other);
  return cudaSuccess;
}

template <class T> struct DoubleBuffer {
  T *d_buffers[2];
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate} {}
  T *Current() { return d_buffers[selector]; }
  T *Alternate() { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
#define __JE_SORT(name, down)                                                                                          \
  template <class K>                                                                                                   \
  static cudaError_t name##Keys##down(void *memory, size_t &bytes, const K *from, K *to, int n, int first = 0,         \
                                      int end = 8 * sizeof(K), cudaStream_t = 0) {                                     \
    return sort<K, char>(memory, bytes, from, to, nullptr, nullptr, n, __je_is_##down, first, end);                    \
  }                                                                                                                    \
  template <class K, class V>                                                                                          \
  static cudaError_t name##Pairs##down(void *memory, size_t &bytes, const K *from, K *to, const V *values, V *sorted,  \
                                       int n, int first = 0, int end = 8 * sizeof(K), cudaStream_t = 0) {              \
    return sort(memory, bytes, from, to, values, sorted, n, __je_is_##down, first, end);                               \
  }                                                                                                                    \
  template <class K>                                                                                                   \
  static cudaError_t name##Keys##down(void *memory, size_t &bytes, DoubleBuffer<K> &keys, int n, int first = 0,        \
                                      int end = 8 * sizeof(K), cudaStream_t = 0) {                                     \
    sort<K, char>(memory, bytes, keys.Current(), keys.Alternate(), nullptr, nullptr, n, __je_is_##down, first, end);   \
    if (memory) keys.selector ^= 1;                                                                                    \
    return cudaSuccess;                                                                                                \
  }                                                                                                                    \
  template <class K, class V>                                                                                          \
  static cudaError_t name##Pairs##down(void *memory, size_t &bytes, DoubleBuffer<K> &keys, DoubleBuffer<V> &values,    \
                                       int n, int first = 0, int end = 8 * sizeof(K), cudaStream_t = 0) {              \
    sort(memory, bytes, keys.Current(), keys.Alternate(), values.Current(), values.Alternate(), n, __je_is_##down,     \
         first, end);                                                                                                  \
    if (memory) keys.selector ^= 1, values.selector ^= 1;                                                              \
    return cudaSuccess;                                                                                                \
  }
  static constexpr bool __je_is_ = false, __je_is_Descending = true;
  __JE_SORT(Sort, )
  __JE_SORT(Sort, Descending)
#undef __JE_SORT

 private:
  template <class K, class V>
  static cudaError_t sort(void *memory, size_t &bytes, const K *from, K *to, const V *values, V *sorted, int n, bool down,
                          int first, int end) {
    bool whole = first == 0 && end >= (int)(8 * sizeof(K));
    return __je_sort_all(memory, bytes, from, to, values, sorted, n, __je_by_digits<K>{down, whole, first, end});
  }
};

template <class T> __attribute__((global)) void __je_copy_all(const T *from, T *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
struct DeviceMergeSort {
#define __JE_SORT(name)                                                                                             \
  template <class K, class F>                                                                                       \
  static cudaError_t name##Keys(void *memory, size_t &bytes, K *keys, int n, F before, cudaStream_t = 0) {          \
    return sort<K, char>(memory, bytes, keys, nullptr, n, before);                                                  \
  }                                                                                                                 \
  template <class K, class V, class F>                                                                              \
  static cudaError_t name##Pairs(void *memory, size_t &bytes, K *keys, V *values, int n, F before, cudaStream_t = 0) { \
    return sort(memory, bytes, keys, values, n, before);                                                            \
  }
  __JE_SORT(Sort)
  __JE_SORT(StableSort)
#undef __JE_SORT

 private:
  // In place.
  template <class K, class V, class F>
  static cudaError_t sort(void *memory, size_t &bytes, K *keys, V *values, int n, F before) {
    __JE_ASKED(memory, bytes)
    if (n <= 0) return cudaSuccess;
    K *sorted;
    V *followed = nullptr;
    cudaMalloc(&sorted, n * sizeof(K));
    if (values) cudaMalloc(&followed, n * sizeof(V));
    __je_sort_all(memory, bytes, keys, sorted, values, followed, n, before);
    __je_copy_all<<<(n + 255) / 256, 256>>>(sorted, keys, n);
    if (values) __je_copy_all<<<(n + 255) / 256, 256>>>(followed, values, n);
    cudaFree(sorted);
    if (values) cudaFree(followed);
    return cudaSuccess;
  }
};

// Samples outside of the levels are in no bin.
template <class I, class C, class L>
__attribute__((global)) void __je_even_bins(I samples, C *histogram, int bins, L lower, L upper, int n) {
  for (int bin = 0; bin < bins; bin++) histogram[bin] = 0;
  for (int i = 0; i < n; i++) {
    L sample = samples[i];
    if (sample < lower || !(sample < upper)) continue;
    int bin;
    if constexpr (std::is_floating_point<L>::value) bin = (int)((sample - lower) * (bins / (upper - lower)));
    else bin = (int)((unsigned long long)(sample - lower) * bins / (unsigned long long)(upper - lower));
    histogram[bin < bins ? bin : bins - 1] += 1;
  }
}
template <class I, class C, class L>
__attribute__((global)) void __je_bins_of_levels(I samples, C *histogram, int bins, const L *levels, int n) {
  for (int bin = 0; bin < bins; bin++) histogram[bin] = 0;
  for (int i = 0; i < n; i++) {
    L sample = samples[i];
    int bin = -1;
    for (int level = 0; level <= bins; level++) bin += !(sample < levels[level]);
    if (bin >= 0 && bin < bins) histogram[bin] += 1;
  }
}
struct DeviceHistogram {
  template <class I, class C, class L>
  static cudaError_t HistogramEven(void *memory, size_t &bytes, I samples, C *histogram, int levels, L lower, L upper,
                                   int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_even_bins<<<1, 1>>>(samples, histogram, levels - 1, lower, upper, n);
    return cudaSuccess;
  }
  template <class I, class C, class L>
  static cudaError_t HistogramRange(void *memory, size_t &bytes, I samples, C *histogram, int count, const L *levels,
                                    int n, cudaStream_t = 0) {
    __JE_ASKED(memory, bytes)
    __je_bins_of_levels<<<1, 1>>>(samples, histogram, count - 1, levels, n);
    return cudaSuccess;
  }
};
#undef __JE_VALUE
#undef __JE_TOTAL
#undef __JE_ASKED

} // namespace cub
