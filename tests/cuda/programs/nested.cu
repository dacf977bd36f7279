// A kernel that launches another one, and a host function that does not need it.
#include <cuda_runtime.h>

__global__ void child(double *x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= 2;
}
static __global__ void triple(double *x) { x[threadIdx.x] *= 3; }
__global__ void parent(double *x, int n) {
  if (threadIdx.x == 0) child<<<1, n>>>(x, n);
}
void outer(double *x, int n) {
  double *memory;
  cudaMalloc(&memory, n * sizeof(double));
  cudaMemcpy(memory, x, n * sizeof(double), cudaMemcpyHostToDevice);
  child<<<1, n>>>(memory, n);
  triple<<<1, n>>>(memory);
  cudaMemcpy(x, memory, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(memory);
}
