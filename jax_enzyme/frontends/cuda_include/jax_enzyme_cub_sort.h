// Sorts and histograms of a block, of CUB. The place of an item is the number of those before it, so that equal keys
// stay in order.
#pragma once

namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

// Whether `a` comes before `b` where both differ; what is not a number comes last.
template <class T> __JE_BOTH_MEMBER bool __je_before(const T &a, const T &b) { return a < b || (b != b && a == a); }

// Some bits of a key, as a number in the order of the keys.
template <class T> __JE_BOTH_MEMBER unsigned long long __je_digits(T key, int first, int end) {
  unsigned long long bits = 0, sign = 1ull << (8 * sizeof(T) - 1), all = sign | (sign - 1);
  if constexpr (std::is_floating_point<T>::value) {
    if (key == 0) key = 0;
    __builtin_memcpy(&bits, &key, sizeof(T));
    bits ^= bits & sign ? all : sign;
  } else {
    bits = (unsigned long long)key & all;
    if (T(-1) < T(0)) bits ^= sign;
  }
  bits >>= first;
  return end - first >= 64 ? bits : bits & ((1ull << (end - first)) - 1);
}

// Where the items of a thread come from: each thread ranks its own, and looks for those that belong here.
template <int Threads, class Together, int N, class D>
__JE_MEMBER void __je_rank(int *places, int thread, int (&sources)[N], bool striped, D before) {
  for (int i = 0; i < N; i++) {
    int own = thread * N + i, place = 0;
    for (int j = 0; j < Threads * N; j++) place += j < own ? !before(own, j) : j > own && before(j, own);
    places[own] = place;
  }
  Together::meet();
  for (int i = 0; i < N; i++) {
    int here = striped ? thread + i * Threads : thread * N + i, source = 0;
    for (int j = 0; j < Threads * N; j++) source = places[j] == here ? j : source;
    sources[i] = source;
  }
}

// A sort by a comparison. Of an incomplete one, the items behind the valid ones are taken for the last.
template <class K, int Threads, int N, class V> struct __je_sorted_items {
  __je_shared<K, Threads * N> keys;
  __je_shared<V, Threads * N> values;
  int places[Threads * N];
};
template <int Threads, class Together, class K, int N, class V, class F>
__JE_MEMBER void __je_sort(__je_sorted_items<K, Threads, N, V> &shared, int thread, K (&keys)[N], int (&sources)[N],
                           F before, int valid) {
  K *all = shared.keys.data();
  for (int i = 0; i < N; i++) all[thread * N + i] = keys[i];
  Together::meet();
  __je_rank<Threads, Together>(shared.places, thread, sources, false, [=](int a, int b) mutable {
    return a < valid && (b >= valid || before(all[a], all[b]));
  });
  for (int i = 0; i < N; i++) keys[i] = all[sources[i]];
  Together::meet();
}
template <int Threads, class Together, class K, int N, class V>
__JE_MEMBER void __je_follow(__je_sorted_items<K, Threads, N, V> &shared, int thread, V (&values)[N], int (&sources)[N]) {
  V *all = shared.values.data();
  for (int i = 0; i < N; i++) all[thread * N + i] = values[i];
  Together::meet();
  for (int i = 0; i < N; i++) values[i] = all[sources[i]];
}
#define __JE_MERGE_SORT(name, Threads, Together)                                                    \
  template <class F> __JE_MEMBER void name(K (&keys)[N], F before) {                                \
    int sources[N];                                                                                 \
    __je_sort<Threads, Together>(shared, thread(), keys, sources, before, Threads * N);             \
  }                                                                                                 \
  template <class F> __JE_MEMBER void name(K (&keys)[N], F before, int valid, K otherwise) {        \
    int sources[N];                                                                                 \
    for (int i = 0; i < N; i++)                                                                     \
      if (thread() * N + i >= valid) keys[i] = otherwise;                                           \
    __je_sort<Threads, Together>(shared, thread(), keys, sources, before, valid);                   \
  }                                                                                                 \
  template <class F> __JE_MEMBER void name(K (&keys)[N], V (&values)[N], F before) {                \
    int sources[N];                                                                                 \
    __je_sort<Threads, Together>(shared, thread(), keys, sources, before, Threads * N);             \
    __je_follow<Threads, Together>(shared, thread(), values, sources);                              \
  }                                                                                                 \
  template <class F>                                                                                \
  __JE_MEMBER void name(K (&keys)[N], V (&values)[N], F before, int valid, K otherwise) {           \
    int sources[N];                                                                                 \
    for (int i = 0; i < N; i++)                                                                     \
      if (thread() * N + i >= valid) keys[i] = otherwise;                                           \
    __je_sort<Threads, Together>(shared, thread(), keys, sources, before, valid);                   \
    __je_follow<Threads, Together>(shared, thread(), values, sources);                              \
  }

template <class K, int X, int N, class V = NullType, int Y = 1, int Z = 1> class BlockMergeSort {
  static constexpr int Threads = X * Y * Z;
  typedef __je_sorted_items<K, Threads, N, V> Storage;
  __JE_COLLECTIVE(BlockMergeSort)

  __JE_MERGE_SORT(Sort, Threads, __je_block)
  __JE_MERGE_SORT(StableSort, Threads, __je_block)
};
template <class K, int N, int Width = 32, class V = NullType> class WarpMergeSort {
  __je_sorted_items<K, Width, N, V> &shared;
  __JE_MEMBER static int thread() { return __je_lane_in<Width>(); }

 public:
  typedef __je_sorted_items<K, Width, N, V> TempStorage;
  __JE_MEMBER WarpMergeSort(TempStorage &storage) : shared(storage) {}
  __JE_MERGE_SORT(Sort, Width, __je_lanes_of<Width>)
  __JE_MERGE_SORT(StableSort, Width, __je_lanes_of<Width>)
};
#undef __JE_MERGE_SORT

template <class K, int X, int N, class V = NullType, int = 4, bool = true, BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS,
          int = 0, int Y = 1, int Z = 1, int = 0>
class BlockRadixSort {
  static constexpr int Threads = X * Y * Z, Bits = 8 * sizeof(K);
  typedef __je_sorted_items<K, Threads, N, V> Storage;
  __JE_COLLECTIVE(BlockRadixSort)

 private:
  __JE_MEMBER void sort(K (&keys)[N], int (&sources)[N], bool down, bool striped, int first, int end) {
    K *all = shared.keys.data();
    for (int i = 0; i < N; i++) all[thread() * N + i] = keys[i];
    __syncthreads();
    if (first == 0 && end >= Bits) {
      __je_rank<Threads, __je_block>(shared.places, thread(), sources, striped, [=](int a, int b) {
        return down ? __je_before(all[b], all[a]) : __je_before(all[a], all[b]);
      });
    } else {
      __je_rank<Threads, __je_block>(shared.places, thread(), sources, striped, [=](int a, int b) {
        unsigned long long x = __je_digits(all[a], first, end), y = __je_digits(all[b], first, end);
        return down ? y < x : x < y;
      });
    }
    for (int i = 0; i < N; i++) keys[i] = all[sources[i]];
    __syncthreads();
  }

 public:
#define __JE_SORT(name, down, striped)                                                                \
  __JE_MEMBER void name(K (&keys)[N], int first = 0, int end = Bits) {                                \
    int sources[N];                                                                                   \
    sort(keys, sources, down, striped, first, end);                                                   \
  }                                                                                                   \
  __JE_MEMBER void name(K (&keys)[N], V (&values)[N], int first = 0, int end = Bits) {                \
    int sources[N];                                                                                   \
    sort(keys, sources, down, striped, first, end);                                                   \
    __je_follow<Threads, __je_block>(shared, thread(), values, sources);                              \
  }
  __JE_SORT(Sort, false, false)
  __JE_SORT(SortDescending, true, false)
  __JE_SORT(SortBlockedToStriped, false, true)
  __JE_SORT(SortDescendingBlockedToStriped, true, true)
#undef __JE_SORT
};

template <class T, int X, int N, int Bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int Y = 1, int Z = 1, int = 0>
class BlockHistogram {
  struct Storage {};
  __JE_COLLECTIVE(BlockHistogram)

  template <class C> __JE_MEMBER void InitHistogram(C (&histogram)[Bins]) {
    for (int bin = thread(); bin < Bins; bin += X * Y * Z) histogram[bin] = 0;
  }
  template <class C> __JE_MEMBER void Composite(T (&items)[N], C (&histogram)[Bins]) {
    for (int i = 0; i < N; i++) atomicAdd(&histogram[items[i]], C(1));
  }
  template <class C> __JE_MEMBER void Histogram(T (&items)[N], C (&histogram)[Bins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(items, histogram);
  }
};

} // namespace cub
