// A product of matrices in tiles: a template whose instance the host chooses, streams, events, checked calls.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

template <class T> void check(T code, const char *call, const char *file, int line) {
  if (code) {
    fprintf(stderr, "%s:%d: %s gave %d, %s\n", file, line, call, (int)code, cudaGetErrorString(code));
    exit(EXIT_FAILURE);
  }
}
#define CHECK(call) check((call), #call, __FILE__, __LINE__)

template <int TILE> __global__ void product(const double *a, const double *b, double *c, int n) {
  __shared__ double left[TILE][TILE], right[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  double sum = 0;
  for (int t = 0; t < n; t += TILE) {
    left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int multiply(const double *a, const double *b, double *c, int n, int tile) {
  double *da, *db, *dc;
  size_t bytes = sizeof(double) * n * n;
  CHECK(cudaMalloc(reinterpret_cast<void **>(&da), bytes));
  CHECK(cudaMalloc((void **)&db, bytes));
  CHECK(cudaMalloc(&dc, bytes));
  cudaStream_t stream;
  cudaEvent_t begin, end;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMemcpyAsync(da, a, bytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(db, b, bytes, cudaMemcpyHostToDevice, stream));
  dim3 blockDim(tile, tile), gridDim(n / blockDim.x, n / blockDim.y);
  CHECK(cudaEventRecord(begin, stream));
  if (tile == 8)
    product<8><<<gridDim, blockDim, 0, stream>>>(da, db, dc, n);
  else
    product<4><<<gridDim, blockDim, 0, stream>>>(da, db, dc, n);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(cudaMemcpyAsync(c, dc, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  for (double *p : {da, db, dc}) CHECK(cudaFree(p));
  return milliseconds < 0;
}

int main(int argc, char **argv) {
  double a[64] = {}, b[64] = {}, c[64];
  printf("%d\n", multiply(a, b, c, 8, argc > 1 ? atoi(argv[1]) : 8));
  return 0;
}
