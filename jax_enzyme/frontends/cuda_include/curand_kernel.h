// Random numbers of cuRAND's device interface: the same sequences, of XORWOW (Marsaglia, Xorshift RNGs, J. Stat. Softw.
// 8, 2003) and Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
#pragma once
#include "cuda_runtime.h"

#define __je_rand static __inline__ __device__

struct curandStateXORWOW {
  unsigned d, v[5];
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned STATE;
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStateXORWOW curandStateXORWOW_t, curandState, curandState_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

// -- XORWOW. Its five words are linear over GF(2): n steps are the polynomial x^n, modulo the characteristic polynomial,
// of one step.

struct __je_polynomial {
  unsigned c[5];
};
static __device__ const unsigned __je_xorwow[5] = {0x00060001, 0x08610030, 0x00062121, 0x0f3c0035, 0x00000f0e};  // without x^160
static __device__ const unsigned __je_xorwow_jumps[20][5] = {  // x^(2^(67 + i))
    {0x26294934, 0x77bbc248, 0x1a87dad0, 0x930052d4, 0x947e6dd2},
    {0x5f39c379, 0x95e20ba6, 0x20e9ff72, 0x1244ce5e, 0xe8fd228f},
    {0xa7474d19, 0x37c549e0, 0x140877d2, 0x24c43924, 0xcd52ebec},
    {0xe0360ec5, 0xb1c96c24, 0xdbb91766, 0x666ff5dc, 0xf19a7e52},
    {0xfcc8f692, 0x35aa698a, 0x04ebbf85, 0x448304b0, 0x082f3fd5},
    {0x48c289bd, 0xe851cf98, 0x845ad581, 0xfd70752a, 0x2c3e63f6},
    {0xe502f5b3, 0x77859d31, 0x97e1cbb3, 0xea09047a, 0x61d5f37e},
    {0xb89326d0, 0x5a8655a9, 0xfb6e98f5, 0x02102162, 0x7e6fcf6f},
    {0xb3a15db4, 0xc6df3330, 0x1a8be751, 0xf1e4b221, 0x6bb61c05},
    {0x133de1d0, 0x361e4422, 0xc6131fcf, 0xd9719f45, 0x9658a164},
    {0x19e2bee8, 0xf8974218, 0x4e65536a, 0xa2570336, 0xe9b88082},
    {0x7863644b, 0x2a21ce84, 0x112e86f1, 0xed01ce0e, 0xba143e84},
    {0x0e2cae2e, 0xd1011279, 0x58923768, 0x2bf650ba, 0xc985bcda},
    {0x213a286a, 0x6596b510, 0x6fc10eae, 0x38a13547, 0x11c7749e},
    {0x146281e7, 0xa45b4452, 0xafa8c695, 0x74a0ac94, 0x4b250e0a},
    {0x2306bc52, 0x790f3b4c, 0x2fe473b9, 0xbc81d7c0, 0x093efe98},
    {0x89658c8b, 0xf3914315, 0xa73fe84b, 0x3c5fadb6, 0xadba8dd6},
    {0x09e49814, 0x09caf5ed, 0x6b2460d9, 0x1b9981c1, 0x2d1fefc3},
    {0x82161afc, 0x9bb13c55, 0xfd20d7fb, 0x306d90b9, 0x92bf386f},
    {0x96d32350, 0x0e081864, 0x69faa798, 0xe7faecf5, 0xf1f951be},
};

static __device__ __je_polynomial __je_times(const __je_polynomial &a, const __je_polynomial &b) {
  __je_polynomial r = {{0, 0, 0, 0, 0}};
  for (int i = 159; i >= 0; i--) {
    unsigned over = 0u - (r.c[4] >> 31), add = 0u - (b.c[i / 32] >> (i % 32) & 1u);
    for (int k = 4; k > 0; k--) r.c[k] = r.c[k] << 1 | r.c[k - 1] >> 31;
    r.c[0] <<= 1;
    for (int k = 0; k < 5; k++) r.c[k] ^= (over & __je_xorwow[k]) ^ (add & a.c[k]);
  }
  return r;
}

__je_rand unsigned __je_step(curandStateXORWOW *s) {
  unsigned t = s->v[0] ^ (s->v[0] >> 2);
  for (int k = 0; k < 4; k++) s->v[k] = s->v[k + 1];
  return s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
}

static __device__ void __je_jump(curandStateXORWOW *s, const __je_polynomial &by) {
  unsigned r[5] = {0, 0, 0, 0, 0};
  for (int i = 0; i < 160; i++) {
    unsigned add = 0u - (by.c[i / 32] >> (i % 32) & 1u);
    for (int k = 0; k < 5; k++) r[k] ^= add & s->v[k];
    __je_step(s);
  }
  for (int k = 0; k < 5; k++) s->v[k] = r[k];
}

static __device__ void skipahead(unsigned long long n, curandStateXORWOW *s) {
  s->d += 362437u * (unsigned)n;
  if (!n) return;
  __je_polynomial to = {{1, 0, 0, 0, 0}}, x = {{2, 0, 0, 0, 0}};
  for (; n; n >>= 1) {
    if (n & 1) to = __je_times(to, x);
    x = __je_times(x, x);
  }
  __je_jump(s, to);
}

static __device__ void skipahead_sequence(unsigned long long n, curandStateXORWOW *s) {  // 2^67 numbers each
  if (!n) return;
  __je_polynomial to = {{1, 0, 0, 0, 0}}, x = to;
  for (int i = 0; n; n >>= 1, i++) {
    if (i < 20)
      for (int k = 0; k < 5; k++) x.c[k] = __je_xorwow_jumps[i][k];
    else
      x = __je_times(x, x);
    if (n & 1) to = __je_times(to, x);
  }
  __je_jump(s, to);
}

__je_rand void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                           curandStateXORWOW *s) {
  unsigned low = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
  unsigned high = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
  s->d = 6615241u + high + low;
  s->v[0] = 123456789u + low;
  s->v[1] = 362436069u ^ low;
  s->v[2] = 521288629u + high;
  s->v[3] = 88675123u ^ high;
  s->v[4] = 5783321u + low;
  skipahead_sequence(sequence, s);
  skipahead(offset, s);
  s->boxmuller_flag = s->boxmuller_flag_double = 0;
  s->boxmuller_extra = 0;
  s->boxmuller_extra_double = 0;
}

__je_rand unsigned curand(curandStateXORWOW *s) {
  unsigned last = __je_step(s);
  s->d += 362437u;
  return last + s->d;
}

// -- Philox: ten rounds of a counter under a key

__je_rand uint4 __je_philox(uint4 c, uint2 k) {
  for (int i = 0; i < 10; i++) {
    unsigned long long x = 0xD2511F53ull * c.x, y = 0xCD9E8D57ull * c.z;
    c = make_uint4((unsigned)(y >> 32) ^ c.y ^ k.x, (unsigned)y, (unsigned)(x >> 32) ^ c.w ^ k.y, (unsigned)x);
    k.x += 0x9E3779B9u;
    k.y += 0xBB67AE85u;
  }
  return c;
}

__je_rand void __je_count(curandStatePhilox4_32_10 *s, unsigned long long low, unsigned long long high) {
  unsigned long long a = ((unsigned long long)s->ctr.y << 32 | s->ctr.x) + low;
  unsigned long long b = ((unsigned long long)s->ctr.w << 32 | s->ctr.z) + high + (a < low);
  s->ctr = make_uint4((unsigned)a, (unsigned)(a >> 32), (unsigned)b, (unsigned)(b >> 32));
  s->output = __je_philox(s->ctr, s->key);
}

__je_rand void skipahead(unsigned long long n, curandStatePhilox4_32_10 *s) {
  unsigned state = s->STATE + (unsigned)(n & 3);
  s->STATE = state & 3;
  __je_count(s, (n >> 2) + (state >> 2), 0);
}

__je_rand void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10 *s) { __je_count(s, 0, n); }

__je_rand void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                           curandStatePhilox4_32_10 *s) {
  s->ctr = make_uint4(0, 0, 0, 0);
  s->key = make_uint2((unsigned)seed, (unsigned)(seed >> 32));
  s->STATE = 0;
  skipahead_sequence(sequence, s);
  skipahead(offset, s);
  s->boxmuller_flag = s->boxmuller_flag_double = 0;
  s->boxmuller_extra = 0;
  s->boxmuller_extra_double = 0;
}

__je_rand unsigned curand(curandStatePhilox4_32_10 *s) {
  unsigned r = s->STATE == 0 ? s->output.x : s->STATE == 1 ? s->output.y : s->STATE == 2 ? s->output.z : s->output.w;
  if (++s->STATE == 4) {
    __je_count(s, 1, 0);
    s->STATE = 0;
  }
  return r;
}

__je_rand uint4 curand4(curandStatePhilox4_32_10 *s) {
  unsigned x = curand(s), y = curand(s), z = curand(s);
  return make_uint4(x, y, z, curand(s));
}

// -- Distributions

__je_rand float __je_unit(unsigned x) { return x * 2.3283064e-10f + 2.3283064e-10f / 2.0f; }
__je_rand double __je_unit_double(unsigned x, unsigned y) {
  unsigned long long z = (unsigned long long)x ^ ((unsigned long long)y << 21);
  return z * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}
__je_rand float2 __je_box_muller(unsigned x, unsigned y) {
  float angle = y * (2.3283064e-10f * 6.2831855f) + 2.3283064e-10f * 6.2831855f / 2.0f;
  float length = sqrtf(-2.0f * logf(__je_unit(x)));
  return make_float2(sinf(angle) * length, cosf(angle) * length);
}
__je_rand double2 __je_box_muller_double(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
  double angle = 2.0 * __je_unit_double(y0, y1), length = sqrt(-2.0 * log(__je_unit_double(x0, x1)));
  return make_double2(sinpi(angle) * length, cospi(angle) * length);
}

template <class S> __je_rand float curand_uniform(S *s) { return __je_unit(curand(s)); }
__je_rand double curand_uniform_double(curandStateXORWOW *s) {
  unsigned x = curand(s);
  return __je_unit_double(x, curand(s));
}
__je_rand double curand_uniform_double(curandStatePhilox4_32_10 *s) {
  return curand(s) * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}
__je_rand float4 curand_uniform4(curandStatePhilox4_32_10 *s) {
  uint4 x = curand4(s);
  return make_float4(__je_unit(x.x), __je_unit(x.y), __je_unit(x.z), __je_unit(x.w));
}
__je_rand double2 curand_uniform2_double(curandStatePhilox4_32_10 *s) {
  uint4 x = curand4(s);
  return make_double2(__je_unit_double(x.x, x.y), __je_unit_double(x.z, x.w));
}
template <class S> __je_rand float2 curand_normal2(S *s) {
  unsigned x = curand(s);
  return __je_box_muller(x, curand(s));
}
template <class S> __je_rand double2 curand_normal2_double(S *s) {
  unsigned x = curand(s), y = curand(s), z = curand(s);
  return __je_box_muller_double(x, y, z, curand(s));
}
__je_rand float4 curand_normal4(curandStatePhilox4_32_10 *s) {
  float2 a = curand_normal2(s), b = curand_normal2(s);
  return make_float4(a.x, a.y, b.x, b.y);
}
// Numbers are made in pairs: the second is kept for the next call of its kind (1: normal, 2: its exponential).
template <int Kind, class S, class F> __je_rand float __je_of_pair(S *s, F made) {
  if (s->boxmuller_flag == Kind) {
    s->boxmuller_flag = 0;
    return s->boxmuller_extra;
  }
  float2 pair = curand_normal2(s);
  s->boxmuller_flag = Kind;
  s->boxmuller_extra = made(pair.y);
  return made(pair.x);
}
template <int Kind, class S, class F> __je_rand double __je_of_pair_double(S *s, F made) {
  if (s->boxmuller_flag_double == Kind) {
    s->boxmuller_flag_double = 0;
    return s->boxmuller_extra_double;
  }
  double2 pair = curand_normal2_double(s);
  s->boxmuller_flag_double = Kind;
  s->boxmuller_extra_double = made(pair.y);
  return made(pair.x);
}
template <class S> __je_rand float curand_normal(S *s) {
  return __je_of_pair<1>(s, [](float x) { return x; });
}
template <class S> __je_rand double curand_normal_double(S *s) {
  return __je_of_pair_double<1>(s, [](double x) { return x; });
}
template <class S> __je_rand float curand_log_normal(S *s, float mean, float deviation) {
  return __je_of_pair<2>(s, [=](float x) { return expf(mean + deviation * x); });
}
template <class S> __je_rand double curand_log_normal_double(S *s, double mean, double deviation) {
  return __je_of_pair_double<2>(s, [=](double x) { return exp(mean + deviation * x); });
}

#undef __je_rand
