// Device math in full, threads that meet, atomics, printf, assert, inline PTX, narrow numbers, recursion. With PORTABLE
// what every GPU has: no PTX and no printf.
#include <assert.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <thrust/complex.h>
struct Pair { double a; float b; int c; };
__constant__ double table[4] = {1, 2, 3, 4};
__device__ double kept = 0.5;
__device__ __noinline__ double pair(Pair p) { return p.a * p.b + p.c; }
__device__ double power(double x, int n) { return n == 0 ? 1 : x * power(x, n - 1); }
extern "C" __global__ void all(int n, double a, const double *x, const __half *h, const __nv_bfloat16 *b, double *y,
                               __half *ho, __nv_bfloat16 *bo) {
  extern __shared__ double dynamic[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double z = x[i];
  float f = (float)z;
  dynamic[threadIdx.x] = z;
  int count = __syncthreads_count(z > 0) + __syncthreads_and(z > 1) + __syncthreads_or(z > 2);
  double v = pair({a, (float)h[i], i}) + table[i & 3] + kept + count + power(z, i);
  v += sin(z) + cos(z) + tan(z) + asin(z) + acos(z) + atan(z) + sinh(z) + cosh(z) + tanh(z) + asinh(z) + acosh(z) + atanh(z);
  v += exp(z) + exp2(z) + exp10(z) + expm1(z) + log(z) + log2(z) + log10(z) + log1p(z) + logb(z) + sqrt(z) + cbrt(z);
  thrust::complex<double> c(z, a);
  c = c * c / (c + 2);
  v += thrust::abs(thrust::exp(c)) + thrust::sqrt(c).real() + thrust::pow(c, 1.5).imag() + thrust::tanh(c).real();
  v += erf(z) + erfc(z) + tgamma(z) + lgamma(z) + y1(z) + fabs(z);
  v += floor(z) + ceil(z) + trunc(z) + round(z) + rint(z) + nearbyint(z) + pow(z, a) + atan2(z, a) + hypot(z, a);
  v += fmod(z, a) + remainder(z, a) + fmin(z, a) + fmax(z, a) + fdim(z, a) + copysign(z, a) + nextafter(z, a) + fma(z, a, z);
  v += ldexp(z, 3) + scalbn(z, 2) + ilogb(z) + lround(z) + llround(z) + lrint(z) + llrint(z) + normcdf(z) + erfinv(z);
  f += sinf(f) + cosf(f) + tanf(f) + asinf(f) + acosf(f) + atanf(f) + sinhf(f) + coshf(f) + tanhf(f) + asinhf(f) + acoshf(f);
  f += atanhf(f) + expf(f) + exp2f(f) + exp10f(f) + expm1f(f) + logf(f) + log2f(f) + log10f(f) + log1pf(f) + logbf(f) + sqrtf(f);
  f += cbrtf(f) + erff(f) + erfcf(f) + tgammaf(f) + lgammaf(f) + j0f(f);
  f += fabsf(f) + floorf(f) + ceilf(f) + truncf(f) + roundf(f) + rintf(f) + nearbyintf(f) + powf(f, 2.5f) + atan2f(f, 2.0f);
  f += hypotf(f, 2.0f) + fmodf(f, 2.0f) + remainderf(f, 2.0f) + fminf(f, 2.0f) + fmaxf(f, 2.0f) + fdimf(f, 2.0f) + rsqrtf(f);
  f += copysignf(f, 2.0f) + nextafterf(f, 2.0f) + fmaf(f, f, f) + ldexpf(f, 3) + ilogbf(f) + lroundf(f) + lrintf(f) + __expf(f);
  int e, g;
  double whole;
  float wholef;
  v += frexp(z, &e) + e + modf(z, &whole) + whole + frexpf(f, &g) + g + modff(f, &wholef) + wholef;
  unsigned votes = __ballot_sync(0xffffffffu, z > 0.2);
  v += __popc(votes) + __any_sync(~0u, i == 3) + __all_sync(~0u, i > 3) + __activemask() + __brev(votes) + __clz(i) + __ffs(i);
  v += __shfl_xor_sync(~0u, f, 1) + __shfl_sync(~0u, (long long)i, 3) + __shfl_up_sync(~0u, i, 1) + __shfl_down_sync(~0u, v, 2);
  __syncwarp();
  __threadfence();
#ifndef PORTABLE
  if (z > 1e10) printf("large: %d %f\n", i, z);
#endif
  assert(z < 1e30);
  atomicAdd(&kept, 1.0), atomicAdd((float *)&dynamic[3], 1.0f), atomicAdd((int *)&dynamic[4], 1), atomicMax((int *)&dynamic[0], 3);
  atomicMin((unsigned *)&dynamic[1], 3u), atomicCAS((int *)&dynamic[1], 1, 2), atomicInc((unsigned *)&dynamic[2], 3u);
  v += atomicExch(&y[i], 2.0) + __ldg(&x[i]);
  double local[10];
  for (int k = 0; k < 10; k++) local[k] = x[(i + k) % n];
  v += local[(int)z % 10];
  double half[2];
  memcpy(half, local + (i & 7), sizeof half), memset(local, 0, i & 8), memmove(local, half, 8);
  v += half[0] * half[1] + local[(int)z % 10];
#ifndef PORTABLE
  double *made = new double[n];
  made[i] = v, v += made[n - i - 1];
  delete[] made;
  asm volatile("add.f64 %0, %0, %0;" : "+d"(v));
#endif
  ho[i] = __float2half(f * 2.0f + (float)h[i]);
  bo[i] = __float2bfloat16(__bfloat162float(b[i]) * f);
  y[i] = v + dynamic[threadIdx.x];
}
