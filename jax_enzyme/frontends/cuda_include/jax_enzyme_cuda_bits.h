// Bits and integers: intrinsics on them, conversions, and what a number is made of.
#pragma once

__JE_BOTH int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
__JE_BOTH int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
__JE_BOTH unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
__JE_BOTH unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
__JE_BOTH unsigned __sad(int x, int y, unsigned z) { return (x < y ? (unsigned)y - x : (unsigned)x - y) + z; }
__JE_BOTH unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x < y ? y - x : x - y) + z; }
__JE_BOTH int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
__JE_BOTH int __popc(unsigned x) { return __builtin_popcount(x); }
__JE_BOTH int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__JE_BOTH int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
__JE_BOTH int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
__JE_BOTH int __ffs(int x) { return __builtin_ffs(x); }
__JE_BOTH int __ffsll(long long x) { return __builtin_ffsll(x); }
__JE_BOTH unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__JE_BOTH int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__JE_BOTH unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__JE_BOTH float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__JE_BOTH float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__JE_BOTH long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__JE_BOTH double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__JE_BOTH int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
__JE_BOTH unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
__JE_BOTH unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
__JE_BOTH long long __mul64hi(long long x, long long y) { return (long long)(((__int128)x * y) >> 64); }
__JE_BOTH unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
__JE_BOTH unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__JE_BOTH unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (by & 31)) >> 32);
}
__JE_BOTH unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}
__JE_BOTH unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return by < 32 ? __funnelshift_l(low, high, by) : low;
}
__JE_BOTH unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return by < 32 ? __funnelshift_r(low, high, by) : high;
}
__JE_BOTH unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned found = 0;
  for (int i = 0; i < 4; i++) found |= ((unsigned)(both >> (selectors >> 4 * i & 7) * 8) & 255u) << 8 * i;
  return found;
}
__JE_BOTH int __dp4a(int x, int y, int sum) {
  for (int i = 0; i < 4; i++) sum += (signed char)(x >> 8 * i) * (signed char)(y >> 8 * i);
  return sum;
}
__JE_BOTH unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
  for (int i = 0; i < 4; i++) sum += (x >> 8 * i & 255u) * (y >> 8 * i & 255u);
  return sum;
}
// The place of set bit number `n`, counted from `base` up, or down where `n` is negative.
__JE_BOTH unsigned __fns(unsigned mask, unsigned base, int n) {
  int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
  if (n == 0) return mask >> base & 1u ? base : 0xffffffffu;
  for (int i = (int)base; i >= 0 && i < 32; i += step)
    if ((mask >> i & 1u) && --left == 0) return (unsigned)i;
  return 0xffffffffu;
}
__JE_BOTH int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
__JE_BOTH int __double2loint(double x) { return (int)__double_as_longlong(x); }
__JE_BOTH double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// ---- conversions: to the nearest, toward zero, down, up; numbers out of range saturate. What becomes of one that is no
// number is the ISA's: zero of a float as 32 bits, else the highest bit alone.

#define __JE_WHOLE(real, name, T, kind, saturated, unsure)                                                   \
  extern "C" __attribute__((host, device, const, nothrow)) T __je_##name##2##kind(real) __asm__(saturated);  \
  __JE_BOTH T __##name##2##kind##_rz(real x) {                                                               \
    return !(unsure) || x == x ? __je_##name##2##kind(x) : (T)(1ull << (8 * sizeof(T) - 1));                 \
  }                                                                                                          \
  __JE_BOTH T __##name##2##kind##_rn(real x) { return __##name##2##kind##_rz(rint(x)); }                     \
  __JE_BOTH T __##name##2##kind##_rd(real x) { return __##name##2##kind##_rz(floor(x)); }                    \
  __JE_BOTH T __##name##2##kind##_ru(real x) { return __##name##2##kind##_rz(ceil(x)); }
#define __JE_REAL(T, kind, saturated)                                                                        \
  __JE_WHOLE(float, float, T, kind, saturated ".f32", sizeof(T) > 4)                                         \
  __JE_WHOLE(double, double, T, kind, saturated ".f64", true)                                                \
  __JE_BOTH float __##kind##2float_rn(T x) { return (float)x; }                                              \
  __JE_BOTH double __##kind##2double_rn(T x) { return (double)x; }
__JE_REAL(int, int, "llvm.fptosi.sat.i32")
__JE_REAL(unsigned, uint, "llvm.fptoui.sat.i32")
__JE_REAL(long long, ll, "llvm.fptosi.sat.i64")
__JE_REAL(unsigned long long, ull, "llvm.fptoui.sat.i64")
#undef __JE_REAL
#undef __JE_WHOLE
__JE_BOTH float __double2float_rn(double x) { return (float)x; }
