// Loads, stores and exchanges of the lanes of a warp, of CUB.
#pragma once

namespace cub {

enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int N, WarpLoadAlgorithm A = WARP_LOAD_DIRECT, int Width = 32, int = 0> class WarpLoad {
  __JE_MEMBER static int thread() { return __je_lane_in<Width>(); }

 public:
  struct TempStorage {};
  __JE_MEMBER WarpLoad() {}
  __JE_MEMBER WarpLoad(TempStorage &) {}
  __JE_LOAD(Width, A == WARP_LOAD_STRIPED)
};

template <class T, int N, WarpStoreAlgorithm A = WARP_STORE_DIRECT, int Width = 32, int = 0> class WarpStore {
  __JE_MEMBER static int thread() { return __je_lane_in<Width>(); }

 public:
  struct TempStorage {};
  __JE_MEMBER WarpStore() {}
  __JE_MEMBER WarpStore(TempStorage &) {}
  __JE_STORE(Width, A == WARP_STORE_STRIPED)
};

template <class T, int N, int Width = 32, int = 0> class WarpExchange {
  __je_shared<T, Width * N> &shared;
  __JE_MEMBER static int thread() { return __je_lane_in<Width>(); }

 public:
  typedef __je_shared<T, Width * N> TempStorage;
  __JE_MEMBER WarpExchange(TempStorage &storage) : shared(storage) {}
  __JE_EXCHANGE(Width, __je_lanes_of<Width>)
};

} // namespace cub
#undef __JE_LOAD
#undef __JE_STORE
#undef __JE_EXCHANGE
