// Residual, gradient and step of least squares by cuBLAS, and a kernel between its calls.
#include <cublas_v2.h>
#include <cuda_runtime.h>

__global__ void weigh(double *r, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m) r[i] = tanh(r[i]);
}

double descend(const double *a, const double *b, double *x, int m, int n, double rate, int steps) {
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return -1;
  double *da, *dr, *dx, *dg, one = 1, zero = 0, minus = -1, step = -rate, norm;
  cudaMalloc(&da, m * n * sizeof(double));
  cudaMalloc(&dr, m * sizeof(double));
  cudaMalloc(&dx, n * sizeof(double));
  cudaMalloc(&dg, n * sizeof(double));
  cublasSetMatrix(n, m, sizeof(double), a, n, da, n);
  cudaMemcpy(dx, x, n * sizeof(double), cudaMemcpyHostToDevice);
  for (int s = 0; s < steps; s++) {
    cudaMemcpy(dr, b, m * sizeof(double), cudaMemcpyHostToDevice);
    cublasDgemv(handle, CUBLAS_OP_T, n, m, &one, da, n, dx, 1, &minus, dr, 1);
    weigh<<<(m + 31) / 32, 32>>>(dr, m);
    cublasDgemv(handle, CUBLAS_OP_N, n, m, &one, da, n, dr, 1, &zero, dg, 1);
    cublasDaxpy(handle, n, &step, dg, 1, dx, 1);
  }
  cublasDnrm2(handle, m, dr, 1, &norm);
  cudaMemcpy(x, dx, n * sizeof(double), cudaMemcpyDeviceToHost);
  for (double *p : {da, dr, dx, dg}) cudaFree(p);
  cublasDestroy(handle);
  return norm;
}
