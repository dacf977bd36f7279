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

// Products of a batch of pointers, divided by half of their largest element, plus the transpose of a factor.
void batch(const double *a, double *c, int n, int count) {
  cublasHandle_t handle;
  cublasCreate(&handle);
  double *held, **lists, one = 1, zero = 0;
  double **pointers = new double *[2 * count];
  size_t bytes = count * n * n * sizeof(double);
  cudaMalloc(&held, 3 * bytes);
  cudaMalloc(&lists, 2 * count * sizeof(double *));
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  for (int i = 0; i < 2 * count; i++) pointers[i] = held + i * n * n;
  cudaMemcpy(lists, pointers, 2 * count * sizeof(double *), cudaMemcpyHostToDevice);
  cublasDgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, lists, n, lists, n, &zero, lists + count, n, count);
  double *product = held + count * n * n, *result = product + count * n * n;
  for (int i = 0; i < count; i++, product += n * n, result += n * n) {
    int place;
    cublasIdamax(handle, n * n, product, 1, &place);
    double scale = 1 / product[place - 1], two = 2;
    cublasDscal(handle, n * n, &scale, product, 1);
    cublasDgeam(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, &two, product, n, &one, held + i * n * n, n, result, n);
  }
  cudaMemcpy(c, held + 2 * count * n * n, bytes, cudaMemcpyDeviceToHost);
  cudaFree(held);
  cudaFree(lists);
  delete[] pointers;
  cublasDestroy(handle);
}
