// Cooperative groups, as far as one block goes: the block, tiles of at most a warp, and the grid's shape.
#pragma once
#include "jax_enzyme_cuda.h"

#define __JE_MEMBER __attribute__((device, always_inline)) inline

namespace cooperative_groups {

struct thread_block {
  __JE_MEMBER void sync() const { __syncthreads(); }
  __JE_MEMBER unsigned thread_rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  __JE_MEMBER unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  __JE_MEMBER unsigned num_threads() const { return size(); }
  __JE_MEMBER dim3 group_index() const { return dim3(blockIdx); }
  __JE_MEMBER dim3 thread_index() const { return dim3(threadIdx); }
  __JE_MEMBER dim3 group_dim() const { return dim3(blockDim); }
};
__JE thread_block this_thread_block() { return {}; }

template <unsigned Size> struct thread_block_tile {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  __JE_MEMBER unsigned thread_rank() const { return __je_lane() & (Size - 1); }
  __JE_MEMBER unsigned meta_group_rank() const { return thread_block().thread_rank() / Size; }
  __JE_MEMBER unsigned meta_group_size() const { return (thread_block().size() + Size - 1) / Size; }
  __JE_MEMBER constexpr unsigned size() const { return Size; }
  __JE_MEMBER constexpr unsigned num_threads() const { return Size; }
  __JE_MEMBER unsigned mask() const {
    return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1u) << (__je_lane() & ~(Size - 1));
  }
  __JE_MEMBER void sync() const { __syncwarp(mask()); }
  template <class T> __JE_MEMBER T shfl(T value, unsigned rank) const { return __shfl_sync(mask(), value, rank, Size); }
  template <class T> __JE_MEMBER T shfl_up(T value, unsigned by) const {
    return __shfl_up_sync(mask(), value, by, Size);
  }
  template <class T> __JE_MEMBER T shfl_down(T value, unsigned by) const {
    return __shfl_down_sync(mask(), value, by, Size);
  }
  template <class T> __JE_MEMBER T shfl_xor(T value, unsigned bits) const {
    return __shfl_xor_sync(mask(), value, bits, Size);
  }
  __JE_MEMBER int any(int predicate) const { return (__ballot_sync(mask(), predicate) & mask()) != 0; }
  __JE_MEMBER int all(int predicate) const { return (__ballot_sync(mask(), predicate) & mask()) == mask(); }
  __JE_MEMBER unsigned ballot(int predicate) const {
    return (__ballot_sync(mask(), predicate) & mask()) >> (Size == 32 ? 0 : __je_lane() & ~(Size - 1));
  }
};
template <unsigned Size, class Parent> __JE thread_block_tile<Size> tiled_partition(const Parent &) { return {}; }

template <class T> struct plus {
  __JE_MEMBER T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  __JE_MEMBER T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  __JE_MEMBER T operator()(T a, T b) const { return a < b ? b : a; }
};
template <unsigned Size, class T, class F> __JE T reduce(const thread_block_tile<Size> &tile, T value, F combined) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2) value = combined(value, tile.shfl_xor(value, bits));
  return value;
}

template <class Group> __JE void sync(const Group &group) { group.sync(); }

} // namespace cooperative_groups
