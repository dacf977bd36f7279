// Two or four integers in one word.
#pragma once

// The word of what `f` makes of each part of two words; parts are `bits` wide, with a sign or without.
template <int Bits, class T, class F> __JE_BOTH unsigned __je_parts(unsigned x, unsigned y, F f) {
  unsigned found = 0, mask = (1u << Bits) - 1u;
  for (int i = 0; i < 32; i += Bits) found |= ((unsigned)f((int)(T)(x >> i), (int)(T)(y >> i)) & mask) << i;
  return found;
}
__JE_BOTH int __je_clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

#define __JE_SIMD(name, n, T, expression)                                                  \
  __JE_BOTH unsigned __v##name##n(unsigned x, unsigned y) {                                \
    return __je_parts<32 / n, T>(x, y, [](int a, int b) -> int { return (expression); });  \
  }
#define __JE_SIMD_ONE(name, n, T, expression)                                              \
  __JE_BOTH unsigned __v##name##n(unsigned x) {                                            \
    return __je_parts<32 / n, T>(x, 0, [](int a, int) -> int { return (expression); });    \
  }
#define __JE_COMPARED(n, name, sign, T, condition)         \
  __JE_SIMD(cmp##name##sign, n, T, condition ? -1 : 0)     \
  __JE_SIMD(set##name##sign, n, T, condition ? 1 : 0)
#define __JE_ORDERED(n, sign, T)              \
  __JE_COMPARED(n, lt, sign, T, a < b)        \
  __JE_COMPARED(n, le, sign, T, a <= b)       \
  __JE_COMPARED(n, gt, sign, T, a > b)        \
  __JE_COMPARED(n, ge, sign, T, a >= b)       \
  __JE_SIMD(max##sign, n, T, a > b ? a : b)   \
  __JE_SIMD(min##sign, n, T, a < b ? a : b)   \
  __JE_SIMD(absdiff##sign, n, T, a > b ? a - b : b - a)
#define __JE_SUMMED(n, sign, T)                                              \
  __JE_BOTH unsigned __vsad##sign##n(unsigned x, unsigned y) {               \
    unsigned sum = 0;                                                        \
    for (int i = 0; i < 32; i += 32 / n) {                                   \
      int a = (T)(x >> i), b = (T)(y >> i);                                  \
      sum += (unsigned)(a > b ? a - b : b - a);                              \
    }                                                                        \
    return sum;                                                              \
  }
#define __JE_PARTS(n, S, U, low, high, most)                    \
  __JE_SIMD(add, n, U, a + b)                                   \
  __JE_SIMD(sub, n, U, a - b)                                   \
  __JE_SIMD(addss, n, S, __je_clamp(a + b, low, high))          \
  __JE_SIMD(subss, n, S, __je_clamp(a - b, low, high))          \
  __JE_SIMD(addus, n, U, __je_clamp(a + b, 0, most))            \
  __JE_SIMD(subus, n, U, __je_clamp(a - b, 0, most))            \
  __JE_SIMD(avgu, n, U, (a + b + 1) / 2)                        \
  __JE_SIMD(avgs, n, S, (a + b + (a + b >= 0)) >> 1)            \
  __JE_SIMD(haddu, n, U, (a + b) / 2)                           \
  __JE_SIMD_ONE(abs, n, S, a < 0 ? -a : a)                      \
  __JE_SIMD_ONE(absss, n, S, __je_clamp(a < 0 ? -a : a, 0, high)) \
  __JE_SIMD_ONE(neg, n, S, -a)                                  \
  __JE_SIMD_ONE(negss, n, S, __je_clamp(-a, low, high))         \
  __JE_COMPARED(n, eq, , U, a == b)                             \
  __JE_COMPARED(n, ne, , U, a != b)                             \
  __JE_ORDERED(n, s, S)                                         \
  __JE_ORDERED(n, u, U)                                         \
  __JE_SUMMED(n, s, S)                                          \
  __JE_SUMMED(n, u, U)
__JE_PARTS(2, short, unsigned short, -32768, 32767, 65535)
__JE_PARTS(4, signed char, unsigned char, -128, 127, 255)
#undef __JE_PARTS
#undef __JE_SUMMED
#undef __JE_ORDERED
#undef __JE_COMPARED
#undef __JE_SIMD_ONE
#undef __JE_SIMD
