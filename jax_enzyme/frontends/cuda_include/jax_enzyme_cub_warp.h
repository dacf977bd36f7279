// Loads, stores and exchanges of the lanes of a warp, of CUB.
#pragma once

namespace cub {

enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int N, WarpLoadAlgorithm A = WARP_LOAD_DIRECT, int Width = 32, int = 0> class WarpLoad {
  __JE_MEMBER static int lane() { return __je_lane() & (Width - 1); }

 public:
  struct TempStorage {};
  __JE_MEMBER WarpLoad() {}
  __JE_MEMBER WarpLoad(TempStorage &) {}
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N]) {
    if constexpr (A == WARP_LOAD_STRIPED) LoadDirectStriped<Width>(lane(), from, items);
    else LoadDirectBlocked(lane(), from, items);
  }
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N], int valid) {
    if constexpr (A == WARP_LOAD_STRIPED) LoadDirectStriped<Width>(lane(), from, items, valid);
    else LoadDirectBlocked(lane(), from, items, valid);
  }
  template <class I, class D> __JE_MEMBER void Load(I from, T (&items)[N], int valid, D otherwise) {
    for (int i = 0; i < N; i++) items[i] = otherwise;
    Load(from, items, valid);
  }
};

template <class T, int N, WarpStoreAlgorithm A = WARP_STORE_DIRECT, int Width = 32, int = 0> class WarpStore {
  __JE_MEMBER static int lane() { return __je_lane() & (Width - 1); }

 public:
  struct TempStorage {};
  __JE_MEMBER WarpStore() {}
  __JE_MEMBER WarpStore(TempStorage &) {}
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N]) {
    if constexpr (A == WARP_STORE_STRIPED) StoreDirectStriped<Width>(lane(), to, items);
    else StoreDirectBlocked(lane(), to, items);
  }
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N], int valid) {
    if constexpr (A == WARP_STORE_STRIPED) StoreDirectStriped<Width>(lane(), to, items, valid);
    else StoreDirectBlocked(lane(), to, items, valid);
  }
};

template <class T, int N, int Width = 32, int = 0> class WarpExchange {
  __je_shared<T, Width * N> &shared;
  __JE_MEMBER static int lane() { return __je_lane() & (Width - 1); }

 public:
  typedef __je_shared<T, Width * N> TempStorage;
  __JE_MEMBER WarpExchange(TempStorage &storage) : shared(storage) {}
  template <class U> __JE_MEMBER void BlockedToStriped(const T (&in)[N], U (&out)[N]) {
    for (int i = 0; i < N; i++) shared.data()[lane() * N + i] = in[i];
    __syncwarp(__je_section(Width));
    for (int i = 0; i < N; i++) out[i] = shared.data()[lane() + i * Width];
  }
  template <class U> __JE_MEMBER void StripedToBlocked(const T (&in)[N], U (&out)[N]) {
    for (int i = 0; i < N; i++) shared.data()[lane() + i * Width] = in[i];
    __syncwarp(__je_section(Width));
    for (int i = 0; i < N; i++) out[i] = shared.data()[lane() * N + i];
  }
};

} // namespace cub
