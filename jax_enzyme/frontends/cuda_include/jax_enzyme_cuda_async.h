// Copies that a device makes beside other work, and the barriers that wait for them: here a thread copies at once, and
// whoever waits meets the whole block. All of the headers of these copies and barriers are this one.
#pragma once
#include "cooperative_groups.h"
#include "jax_enzyme_cuda_scopes.h"

// Both addresses are multiples of the size, which is 4, 8 or 16.
__JE void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0) {
  if (size == 16 && !zeros) memcpy(__builtin_assume_aligned(to, 16), __builtin_assume_aligned(from, 16), 16);
  else memcpy(to, from, size - zeros);
  if (zeros) memset((char *)to + size - zeros, 0, zeros);
}
__JE void __pipeline_commit() {}
__JE void __pipeline_wait_prior(int) {}

// Each thread of a group copies some of the elements.
template <class Group, class T, class U> __JE void __je_copy(const Group &group, T *to, const U *from, size_t size) {
  static_assert(sizeof(T) == sizeof(U), "elements of one size are copied");
  for (size_t i = group.thread_rank(); i < size / sizeof(T); i += group.size()) to[i] = from[i];
}

namespace cooperative_groups {
template <class Group, class T, class U, class Size>
__JE void memcpy_async(const Group &group, T *to, const U *from, const Size &size) {
  __je_copy(group, to, from, (size_t)size);
}
template <class Group> __JE void wait(const Group &group) { group.sync(); }
template <unsigned, class Group> __JE void wait_prior(const Group &group) { group.sync(); }
} // namespace cooperative_groups

namespace cuda {

template <size_t Size> struct aligned_size_t {
  size_t size;
  __JE_MEMBER explicit aligned_size_t(size_t size) : size(size) {}
  __JE_MEMBER operator size_t() const { return size; }
};

// A barrier of all threads of the block; of fewer it stops the program.
template <thread_scope Scope = thread_scope_block> class barrier {
 public:
  struct arrival_token {};
  barrier() = default;
  __JE_MEMBER arrival_token arrive(long = 1) { return {}; }
  __JE_MEMBER void wait(arrival_token) const { __syncthreads(); }
  __JE_MEMBER void arrive_and_wait() { __syncthreads(); }
  __JE_MEMBER friend void init(barrier *, long expected) {
    if (expected != (long)cooperative_groups::thread_block::size()) __trap();
  }
};
template <class T, class U, class Size, thread_scope Scope>
__JE void memcpy_async(T *to, const U *from, const Size &size, barrier<Scope> &) {
  memcpy(to, from, (size_t)size);
}
template <class Group, class T, class U, class Size, thread_scope Scope>
__JE void memcpy_async(const Group &group, T *to, const U *from, const Size &size, barrier<Scope> &) {
  __je_copy(group, to, from, (size_t)size);
}

// Stages of copies of one thread, or of a block.
template <thread_scope Scope, unsigned Stages = 1> struct pipeline_shared_state {};
template <thread_scope Scope> struct pipeline {
  __JE_MEMBER void producer_acquire() {}
  __JE_MEMBER void producer_commit() {}
  __JE_MEMBER void consumer_wait() {
    if (Scope == thread_scope_block) __syncthreads();
  }
  __JE_MEMBER void consumer_release() {
    if (Scope == thread_scope_block) __syncthreads();
  }
};
__JE pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope Scope, unsigned Stages>
__JE pipeline<Scope> make_pipeline(const Group &, pipeline_shared_state<Scope, Stages> *) {
  return {};
}
template <unsigned Prior, thread_scope Scope> __JE void pipeline_consumer_wait_prior(pipeline<Scope> &) {}
template <class T, class U, class Size, thread_scope Scope>
__JE void memcpy_async(T *to, const U *from, const Size &size, pipeline<Scope> &) {
  memcpy(to, from, (size_t)size);
}
template <class Group, class T, class U, class Size, thread_scope Scope>
__JE void memcpy_async(const Group &group, T *to, const U *from, const Size &size, pipeline<Scope> &) {
  __je_copy(group, to, from, (size_t)size);
}

} // namespace cuda
