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
