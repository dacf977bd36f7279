// What host functions may do at most, and what they cannot.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <cublasLt.h>

__global__ void twice(double *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
__global__ void spread(double *x) {
  extern __shared__ double first[];
  x[threadIdx.x] = first[0];
}

void grid_of_data(double *x, int n, const int *blocks) { twice<<<blocks[0], 32>>>(x, n); }
void no_shared(double *x, int n) { spread<<<1, n>>>(x); }
void too_many(double *x, int n) { twice<<<1, 2048>>>(x, n); }

void graph(double *, int) {
  cudaGraph_t graph = nullptr;
  cudaGraphClone(&graph, graph);
}
void too_much(double *x, int n) {
  double *memory;
  cudaMalloc(&memory, (size_t)n << 50);
  cudaMemcpy(memory, x, n * sizeof(double), cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(memory, n);
  cudaMemcpy(x, memory, n * sizeof(double), cudaMemcpyDeviceToHost);
}
void peer(double *x, int n) { cudaMemcpyPeer(x, 0, x, 1, n); }

void mixed(double *x, int n) {
  cublasDotEx(nullptr, n, x, CUDA_R_64F, 1, x, CUDA_R_64F, 1, x, CUDA_R_64F, CUDA_R_64F);
}

void exits(double *x, int n) {
  if (x[0] > 3) {
    fprintf(stderr, "too large\n");
    exit(EXIT_FAILURE);
  }
  twice<<<1, 32>>>(x, n);
}

void halved(double *x, int n) {
  for (int threads = n; threads > 4; threads /= 2) twice<<<1, threads>>>(x, threads);
}

void light(double *, int) {
  cublasLtHandle_t handle;
  cublasLtCreate(&handle);
}

typedef double (*Function)(double);
__device__ double doubled(double x) { return 2 * x; }
static const __device__ Function pointer = doubled;
__global__ void apply(double *x, int n, Function f) { x[threadIdx.x] = f(x[threadIdx.x]); }
void pointer_of_the_device(double *x, int n) {
  Function f;
  cudaMemcpyFromSymbol(&f, pointer, sizeof f);
  apply<<<1, 32>>>(x, n, f);
}

static const __device__ double weights[3] = {1, 2, 3};
__global__ void weighted(double *x, int n, double all) { x[threadIdx.x] *= all + weights[threadIdx.x % 3]; }
void constants_of_the_device(double *x, int n) {
  double first[3], *last;
  cudaMemcpyFromSymbol(first, weights, sizeof first);
  cudaGetSymbolAddress((void **)&last, weights);
  weighted<<<1, 32>>>(x, n, first[1] + last[2]);
}
