// A sum in several launches, each of fewer blocks, in dynamic shared memory.
#include <algorithm>
#include <cmath>
#include <iostream>

constexpr int THREADS = 128;

__global__ void squares(double *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= x[i];
}

__global__ void sums(const double *x, double *sum, int n) {
  extern __shared__ double part[];
  unsigned t = threadIdx.x, i = blockIdx.x * 2 * blockDim.x + t;
  part[t] = (i < n ? x[i] : 0.0) + (i + blockDim.x < n ? x[i + blockDim.x] : 0.0);
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) sum[blockIdx.x] = part[0];
}

double norm(const double *x, int n) {
  double *from, *to, result;
  cudaMalloc(&from, n * sizeof(double));
  cudaMalloc(&to, (n / (2 * THREADS) + 1) * sizeof(double));
  cudaMemcpy(from, x, n * sizeof(double), cudaMemcpyHostToDevice);
  squares<<<std::min(4, (n + THREADS - 1) / THREADS), THREADS>>>(from, n);
  for (int left = n; left > 1;) {
    int blocks = (left + 2 * THREADS - 1) / (2 * THREADS);
    sums<<<blocks, THREADS, THREADS * sizeof(double)>>>(from, to, left);
    std::swap(from, to);
    left = blocks;
  }
  cudaMemcpy(&result, from, sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(from);
  cudaFree(to);
  return std::sqrt(result);
}

int main() {
  double x[] = {3, 4};
  std::cout << norm(x, 2) << std::endl;
}
