// CUB, as far as what a thread, a warp and a block do together goes: loads and stores, reductions, scans, exchanges.
// What takes a whole device is in `jax_enzyme_cub_device.h`. All of CUB's headers that are there are both.
//
// Sums have CUB's order: lanes in a tree, warps one after another.
#pragma once
#include "jax_enzyme_cuda.h"

#define __JE_MEMBER __attribute__((device, always_inline)) inline
#define __JE_BOTH_MEMBER __attribute__((host, device, always_inline)) inline

namespace cub {

// ---- functions, and pairs of a place and a value

struct Sum {
  template <class T, class U> __JE_BOTH_MEMBER auto operator()(const T &a, const U &b) const { return a + b; }
};
struct Difference {
  template <class T> __JE_BOTH_MEMBER T operator()(const T &a, const T &b) const { return a - b; }
};
struct Max {
  template <class T, class U> __JE_BOTH_MEMBER std::common_type_t<T, U> operator()(const T &a, const U &b) const {
    return b > a ? b : a;
  }
};
struct Min {
  template <class T, class U> __JE_BOTH_MEMBER std::common_type_t<T, U> operator()(const T &a, const U &b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class T> __JE_BOTH_MEMBER bool operator()(const T &a, const T &b) const { return a == b; }
};
struct Inequality {
  template <class T> __JE_BOTH_MEMBER bool operator()(const T &a, const T &b) const { return a != b; }
};
template <class K, class V> struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() = default;
  __JE_BOTH_MEMBER KeyValuePair(const K &key, const V &value) : key(key), value(value) {}
};
// Of equal values the one with the smaller key.
struct ArgMax {
  template <class K, class V>
  __JE_BOTH_MEMBER KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
    return b.value > a.value || (!(a.value > b.value) && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V>
  __JE_BOTH_MEMBER KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
    return b.value < a.value || (!(a.value < b.value) && b.key < a.key) ? b : a;
  }
};

struct NullType {};
typedef NullType __je_no_type;
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier, class T> __JE_MEMBER T ThreadLoad(T *p) { return *p; }
template <CacheStoreModifier, class T> __JE_MEMBER void ThreadStore(T *p, T value) { *p = value; }

__JE_MEMBER unsigned LaneId() { return __je_lane(); }
__JE_MEMBER int RowMajorTid(int x, int y, int) {
  return (threadIdx.z * y + threadIdx.y) * x + threadIdx.x;
}
__JE_MEMBER unsigned WarpId() { return RowMajorTid(blockDim.x, blockDim.y, blockDim.z) / 32; }
__JE_MEMBER void CTA_SYNC() { __syncthreads(); }
__JE_MEMBER void WARP_SYNC(unsigned mask) { __syncwarp(mask); }
__JE_MEMBER unsigned __je_section(int width) {
  return width == 32 ? ~0u : ((1u << (width & 31)) - 1u) << (__je_lane() & ~(unsigned)(width - 1));
}
// The lane of a thread among those of its logical warp.
template <int Width> __JE_MEMBER int __je_lane_in() { return __je_lane() & (Width - 1); }
template <int Width, class T> __JE_MEMBER T ShuffleIndex(T value, int lane, unsigned mask) {
  return __je_move_any(mask, value, ((int)__je_lane() & ~(Width - 1)) | (lane & (Width - 1)));
}
template <int Width, class T> __JE_MEMBER T ShuffleUp(T value, int by, int first, unsigned mask) {
  int self = __je_lane(), rank = __je_lane_in<Width>();
  return __je_move_any(mask, value, rank - by < first ? self : self - by);
}
template <int Width, class T> __JE_MEMBER T ShuffleDown(T value, int by, int last, unsigned mask) {
  int self = __je_lane(), rank = __je_lane_in<Width>();
  return __je_move_any(mask, value, rank + by > last ? self : self + by);
}

// Who does something together: a block, or a section of a warp.
struct __je_block {
  __JE_MEMBER static void meet() { __syncthreads(); }
};
template <int Width> struct __je_lanes_of {
  __JE_MEMBER static void meet() { __syncwarp(__je_section(Width)); }
};

// What threads share is bytes, as objects in shared memory are not constructed.
template <class T, int N> struct __je_shared {
  alignas(T) unsigned char bytes[N * sizeof(T)];
  __JE_MEMBER T *data() { return reinterpret_cast<T *>(bytes); }
};

// ---- in one thread

template <int N, class T, class F> __JE_MEMBER T __je_reduced(const T (&items)[N], F combined) {
  T total = items[0];
  for (int i = 1; i < N; i++) total = combined(total, items[i]);
  return total;
}
template <int N, class T, class F> __JE_MEMBER T ThreadReduce(const T (&items)[N], F combined) {
  return __je_reduced(items, combined);
}

// ---- in a warp

// Valid in the first lane of a section of `Width`; only the first `valid` of its lanes have a value.
template <int Width, class T, class F> __JE_MEMBER T __je_warp_reduced(T value, F combined, int valid) {
  int self = __je_lane(), rank = __je_lane_in<Width>();
  for (int by = 1; by < Width; by *= 2) {
    T other = __je_move_any(__je_section(Width), value, rank + by < Width ? self + by : self);
    if (rank + by < valid) value = combined(value, other);
  }
  return value;
}
// The same where all lanes have one.
template <int Width, class T, class F> __JE_MEMBER T __je_warp_reduced(T value, F combined) {
  for (int by = 1; by < Width; by *= 2)
    value = combined(value, __je_move_any(__je_section(Width), value, (int)__je_lane() ^ by));
  return value;
}
template <int Width, class T, class F> __JE_MEMBER T __je_warp_scanned(T value, F combined) {
  int self = __je_lane(), rank = __je_lane_in<Width>();
  for (int by = 1; by < Width; by *= 2) {
    T before = __je_move_any(__je_section(Width), value, rank < by ? self : self - by);
    if (rank >= by) value = combined(before, value);
  }
  return value;
}

template <class T, int Width = 32, int = 0> class WarpReduce {
  static_assert(Width <= 32 && (Width & (Width - 1)) == 0, "a logical warp has 1, 2, 4, 8, 16 or 32 threads");

 public:
  struct TempStorage {};
  __JE_MEMBER WarpReduce(TempStorage &) {}
  template <class F> __JE_MEMBER T Reduce(T value, F combined) { return __je_warp_reduced<Width>(value, combined); }
  template <class F> __JE_MEMBER T Reduce(T value, F combined, int valid) {
    return __je_warp_reduced<Width>(value, combined, valid);
  }
  __JE_MEMBER T Sum(T value) { return Reduce(value, cub::Sum()); }
  __JE_MEMBER T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
};

template <class T, int Width = 32, int = 0> class WarpScan {
  static_assert(Width <= 32 && (Width & (Width - 1)) == 0, "a logical warp has 1, 2, 4, 8, 16 or 32 threads");

  __JE_MEMBER T before(T inclusive) {
    int self = __je_lane();
    return __je_move_any(__je_section(Width), inclusive, (self & (Width - 1)) ? self - 1 : self);
  }
  __JE_MEMBER bool is_first() { return __je_lane_in<Width>() == 0; }

 public:
  struct TempStorage {};
  __JE_MEMBER WarpScan(TempStorage &) {}
  __JE_MEMBER T Broadcast(T value, unsigned lane) { return ShuffleIndex<Width>(value, lane, __je_section(Width)); }
  template <class F> __JE_MEMBER void InclusiveScan(T value, T &result, F combined) {
    result = __je_warp_scanned<Width>(value, combined);
  }
  template <class F> __JE_MEMBER void InclusiveScan(T value, T &result, F combined, T &aggregate) {
    result = __je_warp_scanned<Width>(value, combined);
    aggregate = Broadcast(result, Width - 1);
  }
  template <class F> __JE_MEMBER void ExclusiveScan(T value, T &result, F combined) {
    result = before(__je_warp_scanned<Width>(value, combined));
  }
  template <class F> __JE_MEMBER void ExclusiveScan(T value, T &result, T initial, F combined) {
    T other = before(__je_warp_scanned<Width>(value, combined));
    result = is_first() ? initial : combined(initial, other);
  }
  template <class F> __JE_MEMBER void ExclusiveScan(T value, T &result, T initial, F combined, T &aggregate) {
    T inclusive = __je_warp_scanned<Width>(value, combined), other = before(inclusive);
    result = is_first() ? initial : combined(initial, other);
    aggregate = Broadcast(inclusive, Width - 1);
  }
  __JE_MEMBER void InclusiveSum(T value, T &result) { InclusiveScan(value, result, cub::Sum()); }
  __JE_MEMBER void InclusiveSum(T value, T &result, T &aggregate) {
    InclusiveScan(value, result, cub::Sum(), aggregate);
  }
  __JE_MEMBER void ExclusiveSum(T value, T &result) { ExclusiveScan(value, result, T(), cub::Sum()); }
  __JE_MEMBER void ExclusiveSum(T value, T &result, T &aggregate) {
    ExclusiveScan(value, result, T(), cub::Sum(), aggregate);
  }
};

} // namespace cub

#include "jax_enzyme_cub_block.h"
#include "jax_enzyme_cub_warp.h"
#include "jax_enzyme_cub_iterators.h"
#include "jax_enzyme_cub_device.h"

