// Cooperative groups, as far as one block goes: the block, tiles of at most a warp, the lanes that are together, groups
// of a size that is found at run time, and the grid's shape.
#pragma once
#include "jax_enzyme_cuda.h"

#define __JE_MEMBER __attribute__((device, always_inline)) inline

namespace cooperative_groups {

struct thread_block {
  struct arrival_token {};
  __JE_MEMBER static void sync() { __syncthreads(); }
  // What lies between the two sees of other threads what it sees before both.
  __JE_MEMBER static arrival_token barrier_arrive() { return {}; }
  __JE_MEMBER static void barrier_wait(arrival_token &&) { __syncthreads(); }
  __JE_MEMBER static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  __JE_MEMBER static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  __JE_MEMBER static unsigned num_threads() { return size(); }
  __JE_MEMBER static dim3 group_index() { return dim3(blockIdx); }
  __JE_MEMBER static dim3 thread_index() { return dim3(threadIdx); }
  __JE_MEMBER static dim3 group_dim() { return dim3(blockDim); }
  __JE_MEMBER static dim3 dim_threads() { return dim3(blockDim); }
};
__JE thread_block this_thread_block() { return {}; }

__JE_CONVERGENT void __je_grid_sync();
struct grid_group {
  __JE_MEMBER static void sync() { __je_grid_sync(); }
  __JE_MEMBER static bool is_valid() { return true; }
  __JE_MEMBER static unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  __JE_MEMBER static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  __JE_MEMBER static unsigned long long size() { return num_blocks() * thread_block::size(); }
  __JE_MEMBER static unsigned long long num_threads() { return size(); }
  __JE_MEMBER static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  __JE_MEMBER static dim3 dim_blocks() { return dim3(gridDim); }
  __JE_MEMBER static dim3 block_index() { return dim3(blockIdx); }
};
__JE grid_group this_grid() { return {}; }

// What lanes that are together do, for groups that know `mask()`, and the lane of a rank.
template <class Group> struct __je_lanes {
  __JE_MEMBER const Group &self() const { return *static_cast<const Group *>(this); }
  __JE_MEMBER unsigned num_threads() const { return self().size(); }
  __JE_MEMBER void sync() const { __syncwarp(self().mask()); }
  __JE_MEMBER int any(int predicate) const { return (__ballot_sync(self().mask(), predicate) & self().mask()) != 0; }
  __JE_MEMBER int all(int predicate) const {
    return (__ballot_sync(self().mask(), predicate) & self().mask()) == self().mask();
  }
};

struct thread_group;

// Which of the tiles of its parent a tile is, and how many these are: known by the parent's type, or kept without it.
template <unsigned Size, class Parent> struct __je_part {
  __JE_MEMBER static unsigned meta_group_rank() { return Parent::thread_rank() / Size; }
  __JE_MEMBER static unsigned meta_group_size() { return (Parent::size() + Size - 1) / Size; }
};
template <unsigned Size> struct __je_part<Size, void> {
  unsigned rank = 0, tiles = 1;
  __JE_MEMBER unsigned meta_group_rank() const { return rank; }
  __JE_MEMBER unsigned meta_group_size() const { return tiles; }
};

template <unsigned Size, class Parent = void>
struct thread_block_tile : __je_lanes<thread_block_tile<Size, Parent>>, __je_part<Size, Parent> {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  thread_block_tile() = default;
  template <class Other> __JE_MEMBER thread_block_tile(const thread_block_tile<Size, Other> &other) {
    this->rank = other.meta_group_rank();
    this->tiles = other.meta_group_size();
  }
  __JE_MEMBER static unsigned thread_rank() { return __je_lane() & (Size - 1); }
  __JE_MEMBER static constexpr unsigned size() { return Size; }
  __JE_MEMBER static constexpr unsigned num_threads() { return Size; }
  __JE_MEMBER static unsigned mask() {
    return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1u) << (__je_lane() & ~(Size - 1));
  }
  // A structure too goes from lane to lane; one that asks a lane outside of its tile gets its own.
  template <class T> __JE_MEMBER T from(T value, int rank) const {
    int self = __je_lane(), inside = rank >= 0 && rank < (int)Size;
    return __je_move_any(mask(), value, inside ? (self & ~(int)(Size - 1)) + rank : self);
  }
  template <class T> __JE_MEMBER T shfl(T value, unsigned rank) const { return from(value, rank & (Size - 1)); }
  template <class T> __JE_MEMBER T shfl_up(T value, unsigned by) const { return from(value, (int)thread_rank() - (int)by); }
  template <class T> __JE_MEMBER T shfl_down(T value, unsigned by) const { return from(value, thread_rank() + by); }
  template <class T> __JE_MEMBER T shfl_xor(T value, unsigned bits) const { return from(value, thread_rank() ^ bits); }
  __JE_MEMBER unsigned ballot(int predicate) const {
    return (__ballot_sync(mask(), predicate) & mask()) >> (Size == 32 ? 0 : __je_lane() & ~(Size - 1));
  }
  template <class T> __JE_MEMBER unsigned match_any(T value) const {
    return __match_any_sync(mask(), value) >> (Size == 32 ? 0 : __je_lane() & ~(Size - 1));
  }
};
template <unsigned Size, class Parent> __JE thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
  return {};
}

struct coalesced_group : __je_lanes<coalesced_group> {
  unsigned lanes;
  __JE_MEMBER unsigned mask() const { return lanes; }
  __JE_MEMBER unsigned size() const { return __popc(lanes); }
  __JE_MEMBER unsigned thread_rank() const { return __popc(lanes & ((1u << __je_lane()) - 1u)); }
  __JE_MEMBER unsigned packed(unsigned votes) const {
    unsigned found = 0, rank = 0;
    for (unsigned lane = 0; lane < 32; lane++)
      if (lanes >> lane & 1u) found |= (votes >> lane & 1u) << rank++;
    return found;
  }
  __JE_MEMBER unsigned ballot(int predicate) const { return packed(__ballot_sync(lanes, predicate)); }
  template <class T> __JE_MEMBER T shfl(T value, unsigned rank) const {
    return __je_move_any(lanes, value, (int)__fns(lanes, 0, (int)rank + 1) & 31);
  }
  template <class T> __JE_MEMBER T shfl_down(T value, unsigned by) const {
    unsigned rank = thread_rank() + by;
    return shfl(value, rank < size() ? rank : thread_rank());
  }
  template <class T> __JE_MEMBER T shfl_up(T value, unsigned by) const {
    unsigned rank = thread_rank();
    return shfl(value, rank >= by ? rank - by : rank);
  }
};
__JE coalesced_group __je_coalesced(unsigned lanes) {
  coalesced_group group;
  group.lanes = lanes;
  return group;
}
__JE coalesced_group coalesced_threads() { return __je_coalesced(__activemask()); }
template <class Group> __JE coalesced_group binary_partition(const Group &group, bool predicate) {
  unsigned votes = __ballot_sync(group.mask(), predicate);
  return __je_coalesced(group.mask() & (predicate ? votes : ~votes));
}
template <class Group, class T> __JE coalesced_group labeled_partition(const Group &group, T label) {
  return __je_coalesced(__match_any_sync(group.mask(), label));
}

// A block, or its threads in tiles of `extent`.
struct thread_group {
  unsigned extent;
  bool whole;
  __JE_MEMBER thread_group(thread_block) : extent(thread_block::size()), whole(true) {}
  __JE_MEMBER explicit thread_group(unsigned extent) : extent(extent), whole(false) {}
  template <unsigned Size, class Parent>
  __JE_MEMBER thread_group(const thread_block_tile<Size, Parent> &) : extent(Size), whole(false) {}
  __JE_MEMBER unsigned size() const { return extent; }
  __JE_MEMBER unsigned num_threads() const { return extent; }
  __JE_MEMBER unsigned thread_rank() const { return thread_block::thread_rank() % extent; }
  __JE_MEMBER unsigned mask() const {
    return extent >= 32 ? 0xffffffffu : ((1u << extent) - 1u) << (__je_lane() & ~(extent - 1));
  }
  __JE_MEMBER void sync() const {
    if (whole) __syncthreads();
    else __syncwarp(mask());
  }
};
template <class Group> __JE thread_group tiled_partition(const Group &, unsigned extent) { return thread_group(extent); }
__JE coalesced_group tiled_partition(const coalesced_group &group, unsigned extent) {
  unsigned tile = 0, rank = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (group.lanes >> lane & 1u) tile |= (unsigned)(rank++ / extent == group.thread_rank() / extent) << lane;
  return __je_coalesced(tile);
}

template <class T> struct plus {
  __JE_MEMBER T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  __JE_MEMBER T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  __JE_MEMBER T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  __JE_MEMBER T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
  __JE_MEMBER T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
  __JE_MEMBER T operator()(T a, T b) const { return a ^ b; }
};
template <unsigned Size, class Parent, class T, class F>
__JE T reduce(const thread_block_tile<Size, Parent> &tile, T value, F combined) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2) value = combined(value, tile.shfl_xor(value, bits));
  return value;
}
template <class T, class F> __JE T reduce(const coalesced_group &group, T value, F combined) {
  T total = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); rank++) total = combined(total, group.shfl(value, rank));
  return total;
}
template <class Group, class T, class F> __JE T inclusive_scan(const Group &group, T value, F combined) {
  for (unsigned by = 1; by < group.size(); by *= 2) {
    T before = group.shfl_up(value, by);
    if (group.thread_rank() >= by) value = combined(before, value);
  }
  return value;
}
template <class Group, class T> __JE T inclusive_scan(const Group &group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
template <class Group, class T, class F> __JE T exclusive_scan(const Group &group, T value, F combined) {
  T before = group.shfl_up(inclusive_scan(group, value, combined), 1);
  return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T> __JE T exclusive_scan(const Group &group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

template <class Group> __JE void sync(const Group &group) { group.sync(); }

// Of any one thread of the group: here of the first.
template <class Group, class F, class... Arguments>
__JE void invoke_one(const Group &group, F &&called, Arguments &&...arguments) {
  if (group.thread_rank() == 0) called(static_cast<Arguments &&>(arguments)...);
}
template <class Group, class F, class... Arguments>
__JE auto invoke_one_broadcast(const Group &group, F &&called, Arguments &&...arguments)
    -> decltype(called(static_cast<Arguments &&>(arguments)...)) {
  decltype(called(static_cast<Arguments &&>(arguments)...)) result{};
  if (group.thread_rank() == 0) result = called(static_cast<Arguments &&>(arguments)...);
  return group.shfl(result, 0);
}

} // namespace cooperative_groups
