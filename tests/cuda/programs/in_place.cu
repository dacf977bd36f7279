// One array for input and output: what a block has copied to shared memory must not be read at the source.
#include <cuda_runtime.h>

__global__ void neighbours(const double *in, double *out) {
  __shared__ double tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x] * tile[(threadIdx.x + 63) % 64];
}
__global__ void forward(const double *in, double *out) {
  double first = in[63 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = first * in[0];
}

void twice(double *x) {
  double *d;
  cudaMalloc(&d, 64 * sizeof(double));
  cudaMemcpy(d, x, 64 * sizeof(double), cudaMemcpyHostToDevice);
  for (int round = 0; round < 2; round++) neighbours<<<1, 64>>>(d, d);
  double *copy;
  cudaMalloc(&copy, 64 * sizeof(double));
  forward<<<1, 64>>>(d, copy);
  cudaMemcpy(x, copy, 64 * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(d);
  cudaFree(copy);
}
