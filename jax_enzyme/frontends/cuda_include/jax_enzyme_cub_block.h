// What the threads of a block do together, of CUB.
#pragma once

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

// The memory that a collective shares: what it is given, or some of its own.
#define __JE_COLLECTIVE(name)                                              \
  Storage &shared;                                                         \
  __JE_MEMBER static Storage &own() {                                      \
    __shared__ Storage storage;                                            \
    return storage;                                                        \
  }                                                                        \
  __JE_MEMBER static int thread() { return RowMajorTid(X, Y, Z); }         \
                                                                           \
 public:                                                                   \
  typedef Storage TempStorage;                                             \
  __JE_MEMBER name() : shared(own()) {}                                    \
  __JE_MEMBER name(TempStorage &storage) : shared(storage) {}

// Valid in thread 0.
template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
  static constexpr int Threads = X * Y * Z, Warps = (Threads + 31) / 32;
  typedef __je_shared<T, Warps> Storage;
  __JE_COLLECTIVE(BlockReduce)

  template <class F> __JE_MEMBER T Reduce(T value, F combined) {
    if constexpr (Threads % 32 == 0) {
      return across(__je_warp_reduced<32>(value, combined), combined, Threads);
    } else {
      return Reduce(value, combined, Threads);
    }
  }
  template <class F> __JE_MEMBER T Reduce(T value, F combined, int valid) {
    return across(__je_warp_reduced<32>(value, combined, valid - thread() / 32 * 32), combined, valid);
  }
  template <int N, class F> __JE_MEMBER T Reduce(const T (&items)[N], F combined) {
    return Reduce(__je_reduced(items, combined), combined);
  }
  __JE_MEMBER T Sum(T value) { return Reduce(value, cub::Sum()); }
  __JE_MEMBER T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
  template <int N> __JE_MEMBER T Sum(const T (&items)[N]) { return Reduce(items, cub::Sum()); }

 private:
  template <class F> __JE_MEMBER T across(T value, F combined, int valid) {
    if (Warps == 1) return value;
    if (thread() % 32 == 0) shared.data()[thread() / 32] = value;
    __syncthreads();
    if (thread() == 0)
      for (int warp = 1; warp < Warps; warp++)
        if (warp * 32 < valid) value = combined(value, shared.data()[warp]);
    return value;
  }
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0> class BlockScan {
  static constexpr int Threads = X * Y * Z, Warps = (Threads + 31) / 32;
  typedef __je_shared<T, Warps + 1> Storage;
  __JE_COLLECTIVE(BlockScan)

 private:
  // What the threads before this one hold, which the first thread has nothing of, and what all hold.
  template <class F> __JE_MEMBER T before(T value, F combined, T &aggregate) {
    int warp = thread() / 32, lane = thread() % 32;
    T inclusive = __je_warp_scanned<32>(value, combined);
    T exclusive = __je_move_any(~0u, inclusive, lane ? lane - 1 : 0);
    if (lane == 31 || thread() == Threads - 1) shared.data()[warp] = inclusive;
    __syncthreads();
    aggregate = shared.data()[0];
    T prefix = aggregate;
    for (int w = 1; w < Warps; w++) {
      if (w == warp) prefix = aggregate;
      aggregate = combined(aggregate, shared.data()[w]);
    }
    if (warp == 0) return exclusive;
    return lane == 0 ? prefix : combined(prefix, exclusive);
  }
  // What a functor says of the blocks before, which the first warp asks, and its first lane knows.
  template <class P> __JE_MEMBER T asked(P &prefix, T aggregate) {
    if (thread() < 32) {
      T known = prefix(aggregate);
      if (thread() == 0) shared.data()[Warps] = known;
    }
    __syncthreads();
    return shared.data()[Warps];
  }
  template <int N, class F> __JE_MEMBER static void inclusive(const T (&in)[N], T (&out)[N], F combined) {
    T total = in[0];
    out[0] = total;
    for (int i = 1; i < N; i++) out[i] = total = combined(total, in[i]);
  }
  template <int N, class F> __JE_MEMBER static void inclusive(const T (&in)[N], T (&out)[N], F combined, T total) {
    for (int i = 0; i < N; i++) out[i] = total = combined(total, in[i]);
  }
  template <int N, class F> __JE_MEMBER static void exclusive(const T (&in)[N], T (&out)[N], F combined, T total) {
    for (int i = 0; i < N; i++) {
      T next = combined(total, in[i]);
      out[i] = total;
      total = next;
    }
  }

 public:
  template <int N, class F> __JE_MEMBER void InclusiveScan(T (&in)[N], T (&out)[N], F combined, T &aggregate) {
    T other = before(__je_reduced(in, combined), combined, aggregate);
    if (thread() == 0) inclusive(in, out, combined);
    else inclusive(in, out, combined, other);
  }
  template <int N, class F> __JE_MEMBER void InclusiveScan(T (&in)[N], T (&out)[N], F combined) {
    T aggregate;
    InclusiveScan(in, out, combined, aggregate);
  }
  template <class F> __JE_MEMBER void InclusiveScan(T in, T &out, F combined, T &aggregate) {
    T other = before(in, combined, aggregate);
    out = thread() == 0 ? in : combined(other, in);
  }
  template <class F> __JE_MEMBER void InclusiveScan(T in, T &out, F combined) {
    T aggregate;
    InclusiveScan(in, out, combined, aggregate);
  }
  template <int N, class F>
  __JE_MEMBER void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, F combined, T &aggregate) {
    T other = before(__je_reduced(in, combined), combined, aggregate);
    exclusive(in, out, combined, thread() == 0 ? initial : combined(initial, other));
  }
  template <int N, class F> __JE_MEMBER void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, F combined) {
    T aggregate;
    ExclusiveScan(in, out, initial, combined, aggregate);
  }
  template <class F> __JE_MEMBER void ExclusiveScan(T in, T &out, T initial, F combined, T &aggregate) {
    T other = before(in, combined, aggregate);
    out = thread() == 0 ? initial : combined(initial, other);
  }
  template <class F> __JE_MEMBER void ExclusiveScan(T in, T &out, T initial, F combined) {
    T aggregate;
    ExclusiveScan(in, out, initial, combined, aggregate);
  }
  // In the first thread `out` keeps what it had.
  template <class F> __JE_MEMBER void ExclusiveScan(T in, T &out, F combined) {
    T aggregate, other = before(in, combined, aggregate);
    if (thread() != 0) out = other;
  }
  template <class A, class B> __JE_MEMBER void InclusiveSum(A &&in, B &out) { InclusiveScan(in, out, cub::Sum()); }
  template <class A, class B> __JE_MEMBER void ExclusiveSum(A &&in, B &out) {
    ExclusiveScan(in, out, T(), cub::Sum());
  }
  template <class A, class B> __JE_MEMBER void InclusiveSum(A &&in, B &out, T &aggregate) {
    InclusiveScan(in, out, cub::Sum(), aggregate);
  }
  template <class A, class B> __JE_MEMBER void ExclusiveSum(A &&in, B &out, T &aggregate) {
    ExclusiveScan(in, out, T(), cub::Sum(), aggregate);
  }
  template <class F, class P, class = decltype(&P::operator())>
  __JE_MEMBER void ExclusiveScan(T in, T &out, F combined, P &prefix) {
    T aggregate, other = before(in, combined, aggregate), total = asked(prefix, aggregate);
    out = thread() == 0 ? total : combined(total, other);
  }
  template <int N, class F, class P, class = decltype(&P::operator())>
  __JE_MEMBER void ExclusiveScan(T (&in)[N], T (&out)[N], F combined, P &prefix) {
    T aggregate, other = before(__je_reduced(in, combined), combined, aggregate), total = asked(prefix, aggregate);
    exclusive(in, out, combined, thread() == 0 ? total : combined(total, other));
  }
  template <class F, class P, class = decltype(&P::operator())>
  __JE_MEMBER void InclusiveScan(T in, T &out, F combined, P &prefix) {
    T other;
    ExclusiveScan(in, other, combined, prefix);
    out = combined(other, in);
  }
  template <int N, class F, class P, class = decltype(&P::operator())>
  __JE_MEMBER void InclusiveScan(T (&in)[N], T (&out)[N], F combined, P &prefix) {
    T aggregate, other = before(__je_reduced(in, combined), combined, aggregate), total = asked(prefix, aggregate);
    inclusive(in, out, combined, thread() == 0 ? total : combined(total, other));
  }
  template <class A, class B, class P, class = decltype(&P::operator())>
  __JE_MEMBER void ExclusiveSum(A &&in, B &out, P &prefix) {
    ExclusiveScan(in, out, cub::Sum(), prefix);
  }
  template <class A, class B, class P, class = decltype(&P::operator())>
  __JE_MEMBER void InclusiveSum(A &&in, B &out, P &prefix) {
    InclusiveScan(in, out, cub::Sum(), prefix);
  }
};

// ---- loads and stores: thread t has items t * N, t * N + 1, ... (blocked) or t, t + threads, ... (striped)

template <class T, int N, class I> __JE_MEMBER void LoadDirectBlocked(int thread, I from, T (&items)[N]) {
  for (int i = 0; i < N; i++) items[i] = from[thread * N + i];
}
template <class T, int N, class I> __JE_MEMBER void LoadDirectBlocked(int thread, I from, T (&items)[N], int valid) {
  for (int i = 0; i < N; i++)
    if (thread * N + i < valid) items[i] = from[thread * N + i];
}
template <int Threads, class T, int N, class I> __JE_MEMBER void LoadDirectStriped(int thread, I from, T (&items)[N]) {
  for (int i = 0; i < N; i++) items[i] = from[thread + i * Threads];
}
template <int Threads, class T, int N, class I>
__JE_MEMBER void LoadDirectStriped(int thread, I from, T (&items)[N], int valid) {
  for (int i = 0; i < N; i++)
    if (thread + i * Threads < valid) items[i] = from[thread + i * Threads];
}
template <class T, int N, class O> __JE_MEMBER void StoreDirectBlocked(int thread, O to, T (&items)[N]) {
  for (int i = 0; i < N; i++) to[thread * N + i] = items[i];
}
template <class T, int N, class O> __JE_MEMBER void StoreDirectBlocked(int thread, O to, T (&items)[N], int valid) {
  for (int i = 0; i < N; i++)
    if (thread * N + i < valid) to[thread * N + i] = items[i];
}
template <int Threads, class T, int N, class O> __JE_MEMBER void StoreDirectStriped(int thread, O to, T (&items)[N]) {
  for (int i = 0; i < N; i++) to[thread + i * Threads] = items[i];
}
template <int Threads, class T, int N, class O>
__JE_MEMBER void StoreDirectStriped(int thread, O to, T (&items)[N], int valid) {
  for (int i = 0; i < N; i++)
    if (thread + i * Threads < valid) to[thread + i * Threads] = items[i];
}

// Loads, stores and exchanges of those who do them together.
#define __JE_LOAD(Threads, is_striped)                                                           \
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N]) {                              \
    if constexpr (is_striped) LoadDirectStriped<Threads>(thread(), from, items);                 \
    else LoadDirectBlocked(thread(), from, items);                                               \
  }                                                                                              \
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N], int valid) {                   \
    if constexpr (is_striped) LoadDirectStriped<Threads>(thread(), from, items, valid);          \
    else LoadDirectBlocked(thread(), from, items, valid);                                        \
  }                                                                                              \
  template <class I, class D> __JE_MEMBER void Load(I from, T (&items)[N], int valid, D other) { \
    for (int i = 0; i < N; i++) items[i] = other;                                                \
    Load(from, items, valid);                                                                    \
  }
#define __JE_STORE(Threads, is_striped)                                                  \
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N]) {                       \
    if constexpr (is_striped) StoreDirectStriped<Threads>(thread(), to, items);          \
    else StoreDirectBlocked(thread(), to, items);                                        \
  }                                                                                      \
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N], int valid) {            \
    if constexpr (is_striped) StoreDirectStriped<Threads>(thread(), to, items, valid);   \
    else StoreDirectBlocked(thread(), to, items, valid);                                 \
  }
// Item i of a thread goes to the place that `to` says, and comes from the one that `from` says.
template <class Together, class T, int N, class U, class P, class Q>
__JE_MEMBER void __je_exchange(T *shared, const T (&in)[N], U (&out)[N], P to, Q from) {
  for (int i = 0; i < N; i++) shared[to(i)] = in[i];
  Together::meet();
  for (int i = 0; i < N; i++) out[i] = shared[from(i)];
}
#define __JE_EXCHANGE(Threads, Together)                                                                               \
  template <class U> __JE_MEMBER void BlockedToStriped(const T (&in)[N], U (&out)[N]) {                                \
    __je_exchange<Together>(shared.data(), in, out, blocked, striped);                                                 \
  }                                                                                                                    \
  template <class U> __JE_MEMBER void StripedToBlocked(const T (&in)[N], U (&out)[N]) {                                \
    __je_exchange<Together>(shared.data(), in, out, striped, blocked);                                                 \
  }                                                                                                                    \
  template <class U, class R> __JE_MEMBER void ScatterToStriped(const T (&in)[N], U (&out)[N], R (&ranks)[N]) {        \
    __je_exchange<Together>(shared.data(), in, out, [&](int i) { return ranks[i]; }, striped);                         \
  }                                                                                                                    \
  template <class R> __JE_MEMBER void ScatterToStriped(T (&items)[N], R (&ranks)[N]) {                                 \
    ScatterToStriped(items, items, ranks);                                                                             \
  }                                                                                                                    \
                                                                                                                       \
 private:                                                                                                              \
  __JE_MEMBER static int blocked(int i) { return thread() * N + i; }                                                   \
  __JE_MEMBER static int striped(int i) { return thread() + i * Threads; }

template <class T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0>
class BlockLoad {
  struct Storage {};
  __JE_COLLECTIVE(BlockLoad)
  __JE_LOAD(X * Y * Z, A == BLOCK_LOAD_STRIPED)
};

template <class T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0>
class BlockStore {
  struct Storage {};
  __JE_COLLECTIVE(BlockStore)
  __JE_STORE(X * Y * Z, A == BLOCK_STORE_STRIPED)
};

template <class T, int X, int N, bool = false, int Y = 1, int Z = 1, int = 0> class BlockExchange {
  static constexpr int Threads = X * Y * Z;
  typedef __je_shared<T, Threads * N> Storage;
  __JE_COLLECTIVE(BlockExchange)
  __JE_EXCHANGE(Threads, __je_block)

 public:
  template <class U, class R> __JE_MEMBER void ScatterToBlocked(const T (&in)[N], U (&out)[N], R (&ranks)[N]) {
    __je_exchange<__je_block>(shared.data(), in, out, [&](int i) { return ranks[i]; }, blocked);
  }
  template <class R> __JE_MEMBER void ScatterToBlocked(T (&items)[N], R (&ranks)[N]) {
    ScatterToBlocked(items, items, ranks);
  }
  // Items with a negative rank, or without a flag, go nowhere.
  template <class U, class R> __JE_MEMBER void ScatterToStripedGuarded(const T (&in)[N], U (&out)[N], R (&ranks)[N]) {
    scatter(in, out, ranks, [&](int i) { return ranks[i] >= 0; });
  }
  template <class R> __JE_MEMBER void ScatterToStripedGuarded(T (&items)[N], R (&ranks)[N]) {
    ScatterToStripedGuarded(items, items, ranks);
  }
  template <class U, class R, class F>
  __JE_MEMBER void ScatterToStripedFlagged(const T (&in)[N], U (&out)[N], R (&ranks)[N], F (&flags)[N]) {
    scatter(in, out, ranks, [&](int i) { return bool(flags[i]); });
  }
  template <class R, class F> __JE_MEMBER void ScatterToStripedFlagged(T (&items)[N], R (&ranks)[N], F (&flags)[N]) {
    ScatterToStripedFlagged(items, items, ranks, flags);
  }
  // Rows of a warp: those of its lanes.
  template <class U> __JE_MEMBER void BlockedToWarpStriped(const T (&in)[N], U (&out)[N]) {
    __je_exchange<__je_block>(shared.data(), in, out, blocked, of_warp);
  }
  template <class U> __JE_MEMBER void WarpStripedToBlocked(const T (&in)[N], U (&out)[N]) {
    __je_exchange<__je_block>(shared.data(), in, out, of_warp, blocked);
  }
  __JE_MEMBER void BlockedToStriped(T (&items)[N]) { BlockedToStriped(items, items); }
  __JE_MEMBER void StripedToBlocked(T (&items)[N]) { StripedToBlocked(items, items); }
  __JE_MEMBER void BlockedToWarpStriped(T (&items)[N]) { BlockedToWarpStriped(items, items); }
  __JE_MEMBER void WarpStripedToBlocked(T (&items)[N]) { WarpStripedToBlocked(items, items); }

 private:
  __JE_MEMBER static int of_warp(int i) {
    int first = thread() / 32 * 32, lanes = Threads - first < 32 ? Threads - first : 32;
    return first * N + thread() % 32 + i * lanes;
  }
  template <class U, class R, class F>
  __JE_MEMBER void scatter(const T (&in)[N], U (&out)[N], R (&ranks)[N], F taken) {
    for (int i = 0; i < N; i++)
      if (taken(i)) shared.data()[ranks[i]] = in[i];
    __syncthreads();
    for (int i = 0; i < N; i++) out[i] = shared.data()[striped(i)];
  }
};

} // namespace cub

#include "jax_enzyme_cub_neighbours.h"
#include "jax_enzyme_cub_sort.h"
#undef __JE_COLLECTIVE
