// Loads, stores and exchanges of the lanes of a warp, of CUB.
#pragma once

namespace cub {

enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int N, WarpLoadAlgorithm A = WARP_LOAD_DIRECT, int Width = 32, int = 0> class WarpLoad {
 public:
  struct TempStorage {};
  __JE_MEMBER WarpLoad() {}
  __JE_MEMBER WarpLoad(TempStorage &) {}
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N]) {
    if constexpr (A == WARP_LOAD_STRIPED) LoadDirectStriped<Width>(__je_lane_in<Width>(), from, items);
    else LoadDirectBlocked(__je_lane_in<Width>(), from, items);
  }
  template <class I> __JE_MEMBER void Load(I from, T (&items)[N], int valid) {
    if constexpr (A == WARP_LOAD_STRIPED) LoadDirectStriped<Width>(__je_lane_in<Width>(), from, items, valid);
    else LoadDirectBlocked(__je_lane_in<Width>(), from, items, valid);
  }
  template <class I, class D> __JE_MEMBER void Load(I from, T (&items)[N], int valid, D otherwise) {
    for (int i = 0; i < N; i++) items[i] = otherwise;
    Load(from, items, valid);
  }
};

template <class T, int N, WarpStoreAlgorithm A = WARP_STORE_DIRECT, int Width = 32, int = 0> class WarpStore {
 public:
  struct TempStorage {};
  __JE_MEMBER WarpStore() {}
  __JE_MEMBER WarpStore(TempStorage &) {}
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N]) {
    if constexpr (A == WARP_STORE_STRIPED) StoreDirectStriped<Width>(__je_lane_in<Width>(), to, items);
    else StoreDirectBlocked(__je_lane_in<Width>(), to, items);
  }
  template <class O> __JE_MEMBER void Store(O to, T (&items)[N], int valid) {
    if constexpr (A == WARP_STORE_STRIPED) StoreDirectStriped<Width>(__je_lane_in<Width>(), to, items, valid);
    else StoreDirectBlocked(__je_lane_in<Width>(), to, items, valid);
  }
};

template <class T, int N, int Width = 32, int = 0> class WarpExchange {
  __je_shared<T, Width * N> &shared;
 public:
  typedef __je_shared<T, Width * N> TempStorage;
  __JE_MEMBER WarpExchange(TempStorage &storage) : shared(storage) {}
  template <class U> __JE_MEMBER void BlockedToStriped(const T (&in)[N], U (&out)[N]) {
    for (int i = 0; i < N; i++) shared.data()[__je_lane_in<Width>() * N + i] = in[i];
    __syncwarp(__je_section(Width));
    for (int i = 0; i < N; i++) out[i] = shared.data()[__je_lane_in<Width>() + i * Width];
  }
  template <class U> __JE_MEMBER void StripedToBlocked(const T (&in)[N], U (&out)[N]) {
    for (int i = 0; i < N; i++) shared.data()[__je_lane_in<Width>() + i * Width] = in[i];
    __syncwarp(__je_section(Width));
    for (int i = 0; i < N; i++) out[i] = shared.data()[__je_lane_in<Width>() * N + i];
  }
};

} // namespace cub
