// Launches with numbers that only the run knows.
#include <cuda_runtime.h>

__global__ void smooth(const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[(i + 1) % n];
}
__global__ void transposed(const double *x, double *y, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  __shared__ double tile[4096];
  int place = threadIdx.y * blockDim.x + threadIdx.x;
  tile[place] = column < n && row < n ? sin(x[row * n + column]) : 0;
  __syncthreads();
  if (column < n && row < n) y[column * n + row] = tile[place];
}
__global__ void sums(const double *x, double *sum, int n) {
  extern __shared__ double part[];
  double mine = 0;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) mine += x[i] * x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = part[0];
}
__global__ void by_warps(const double *x, double *sum, int n) {
  __shared__ double part[3072];  // with those of `transposed` more than one kernel may have
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  double mine = i < n ? x[i] * x[i] : 0;
  for (int apart = 16; apart; apart /= 2) mine += __shfl_down_sync(~0u, mine, apart);
  if (lane == 0) part[warp] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    double all = 0;
    for (int k = 0; k < (blockDim.x + 31) / 32; k++) all += part[k];
    atomicAdd(sum, all);
  }
}

struct Device {
  double *memory;
  Device(int n) { cudaMalloc(&memory, n * sizeof(double)); }
  ~Device() { cudaFree(memory); }
};

double norm(const double *x, int n, const int *threads) {
  int block = threads[0], grid = (n + block - 1) / block;
  Device from(n), to(n), sum(grid);
  cudaMemcpy(from.memory, x, n * sizeof(double), cudaMemcpyHostToDevice);
  smooth<<<grid, block>>>(from.memory, to.memory, n);
  sums<<<2, block, block * sizeof(double)>>>(to.memory, sum.memory, n);
  double part[2];
  cudaMemcpy(part, sum.memory, sizeof part, cudaMemcpyDeviceToHost);
  return part[0] + part[1];
}
double warps(const double *x, int n, const int *threads) {
  int block = threads[0], grid = (n + block - 1) / block;
  Device from(n), sum(1);
  cudaMemcpy(from.memory, x, n * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemset(sum.memory, 0, sizeof(double));
  by_warps<<<grid, block>>>(from.memory, sum.memory, n);
  double all;
  cudaMemcpy(&all, sum.memory, sizeof all, cudaMemcpyDeviceToHost);
  return all;
}
void turned(const double *x, double *y, int n, const int *threads) {
  dim3 block(threads[0], threads[1]), grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);
  Device from(n * n), to(n * n);
  cudaMemcpy(from.memory, x, n * n * sizeof(double), cudaMemcpyHostToDevice);
  transposed<<<grid, block>>>(from.memory, to.memory, n);
  cudaMemcpy(y, to.memory, n * n * sizeof(double), cudaMemcpyDeviceToHost);
}
