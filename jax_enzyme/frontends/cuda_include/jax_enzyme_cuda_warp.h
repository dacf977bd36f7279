// What the lanes of a warp find out about each other, written with shuffles and votes.
#pragma once

template <class T> __JE unsigned __match_any_sync(unsigned mask, T value) {
  unsigned found = 0;
  for (int lane = 0; lane < 32; lane++) {
    T other = __shfl_sync(mask, value, lane);
    if ((mask >> lane & 1u) && other == value) found |= 1u << lane;
  }
  return found;
}
template <class T> __JE unsigned __match_all_sync(unsigned mask, T value, int *same) {
  *same = __all_sync(mask, __match_any_sync(mask, value) == mask);
  return *same ? mask : 0u;
}

#define __JE_REDUCE(name, T, combined)                                 \
  __JE T name(unsigned mask, T value) {                                \
    bool first = true;                                                 \
    T total = value;                                                   \
    for (int lane = 0; lane < 32; lane++) {                            \
      T other = __shfl_sync(mask, value, lane);                        \
      if (!(mask >> lane & 1u)) continue;                              \
      total = first ? other : (combined);                              \
      first = false;                                                   \
    }                                                                  \
    return total;                                                      \
  }
__JE_REDUCE(__reduce_add_sync, int, total + other)
__JE_REDUCE(__reduce_add_sync, unsigned, total + other)
__JE_REDUCE(__reduce_min_sync, int, other < total ? other : total)
__JE_REDUCE(__reduce_min_sync, unsigned, other < total ? other : total)
__JE_REDUCE(__reduce_max_sync, int, other > total ? other : total)
__JE_REDUCE(__reduce_max_sync, unsigned, other > total ? other : total)
__JE_REDUCE(__reduce_and_sync, unsigned, total & other)
__JE_REDUCE(__reduce_or_sync, unsigned, total | other)
__JE_REDUCE(__reduce_xor_sync, unsigned, total ^ other)
#undef __JE_REDUCE

// Anything that may be copied as bytes goes from lane to lane in words; numbers as themselves.
template <class T> __JE T __je_move_any(unsigned mask, T value, int source) {
  if constexpr (__is_arithmetic(T)) {
    return __je_move(mask, value, source);
  } else {
    static_assert(__is_trivially_copyable(T), "what lanes exchange is copied as bytes");
    unsigned words[(sizeof(T) + 3) / 4] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (unsigned i = 0; i < (sizeof(T) + 3) / 4; i++) words[i] = __je_move(mask, words[i], source);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
  }
}

// What there was before CUDA 9, and is in HIP: without a mask, of the lanes that are there together.
__JE void __je_within_a_warp(bool does) {
  if (!does) __assert_fail("a shuffle without a mask stays within a warp, which has 32 lanes", __FILE__, __LINE__, "");
}
template <class T> __JE T __shfl(T value, int lane, int width = warpSize) {
  __je_within_a_warp(width <= 32 && lane < 32);
  return __shfl_sync(__activemask(), value, lane, width);
}
template <class T> __JE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  __je_within_a_warp(width <= 32 && delta < 32);
  return __shfl_up_sync(__activemask(), value, delta, width);
}
template <class T> __JE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  __je_within_a_warp(width <= 32 && delta < 32);
  return __shfl_down_sync(__activemask(), value, delta, width);
}
template <class T> __JE T __shfl_xor(T value, int bits, int width = warpSize) {
  __je_within_a_warp(width <= 32 && bits < 32);
  return __shfl_xor_sync(__activemask(), value, bits, width);
}
__JE unsigned __ballot(int predicate) { return __ballot_sync(__activemask(), predicate); }
__JE int __any(int predicate) { return __any_sync(__activemask(), predicate); }
__JE int __all(int predicate) { return __all_sync(__activemask(), predicate); }
