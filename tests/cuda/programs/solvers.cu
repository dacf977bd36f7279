// Systems by cuBLAS in batches, and by cuSOLVER one at a time.
#include <cublas_v2.h>
#include <cusolverDn.h>

// x = A^-T b by factors with pivots, without, and by an inverse, one after the other.
void batches(double *a, double *b, int n, int count) {
  cublasHandle_t handle;
  cublasCreate(&handle);
  int *pivots, *info, state;
  double *held, **lists, **pointers = new double *[3 * count], one = 1, zero = 0;
  size_t bytes = count * n * n * sizeof(double);
  cudaMalloc(&held, 2 * bytes);
  cudaMalloc(&lists, 3 * count * sizeof(double *));
  cudaMalloc(&pivots, count * n * sizeof(int));
  cudaMalloc(&info, count * sizeof(int));
  for (int i = 0; i < count; i++) {
    pointers[i] = held + i * n * n;
    pointers[count + i] = held + (count + i) * n * n;
    pointers[2 * count + i] = b + i * n;
  }
  cudaMemcpy(lists, pointers, 3 * count * sizeof(double *), cudaMemcpyHostToDevice);
  for (int *order : {pivots, (int *)nullptr}) {
    cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
    cublasDgetrfBatched(handle, n, lists, n, order, info, count);
    cublasDgetrsBatched(handle, CUBLAS_OP_T, n, 1, lists, n, order, lists + 2 * count, n, &state, count);
  }
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  cublasDmatinvBatched(handle, n, lists, n, lists + count, n, info, count);
  for (int i = 0; i < count; i++) {
    cublasDcopy(handle, n, b + i * n, 1, held, 1);
    cublasDgemv(handle, CUBLAS_OP_T, n, n, &one, held + (count + i) * n * n, n, held, 1, &zero, b + i * n, 1);
  }
  delete[] pointers;
  cublasDestroy(handle);
}

// y = A^-1 x for a symmetric A, by Cholesky's factors, by L and U and by Q and R, one after the other.
int one(const double *a, double *x, int n) {
  cusolverDnHandle_t handle;
  cublasHandle_t blas;
  cusolverDnCreate(&handle);
  cublasCreate(&blas);
  double *held, *tau, *work, number = 1;
  int *pivots, *info, most = 0, size, bytes = n * n * sizeof(double), state = 0;
  cudaMalloc(&held, bytes);
  cudaMalloc(&tau, n * sizeof(double));
  cudaMalloc(&pivots, n * sizeof(int));
  cudaMalloc(&info, sizeof(int));
  cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_UPPER, n, held, n, &most);
  cusolverDnDgeqrf_bufferSize(handle, n, n, held, n, &size);
  most = size > most ? size : most;
  cusolverDnDormqr_bufferSize(handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, n, 1, n, held, n, tau, x, n, &size);
  most = size > most ? size : most;
  cudaMalloc(&work, most * sizeof(double));
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_UPPER, n, held, n, work, most, info);
  cudaMemcpy(&state, info, sizeof(int), cudaMemcpyDeviceToHost);
  cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_UPPER, n, 1, held, n, x, n, info);
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  cusolverDnDgetrf(handle, n, n, held, n, work, pivots, info);
  cusolverDnDgetrs(handle, CUBLAS_OP_N, n, 1, held, n, pivots, x, n, info);
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  cusolverDnDgeqrf(handle, n, n, held, n, tau, work, most, info);
  cusolverDnDormqr(handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, n, 1, n, held, n, tau, x, n, work, most, info);
  cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, 1, &number, held, n, x, n);
  cusolverDnDestroy(handle);
  return state;
}

// Eigenvalues by the first numbers of their vectors, of A and its transpose, and the singular values of A.
void spectral(const double *a, double *w, double *s, int n) {
  cusolverDnHandle_t handle;
  cusolverDnCreate(&handle);
  double *held, *vectors, *values, *work, *first = new double[n * n];
  int *info, most, size, bytes = n * n * sizeof(double);
  cudaMalloc(&held, bytes);
  cudaMalloc(&vectors, 2 * bytes);
  cudaMalloc(&values, n * sizeof(double));
  cudaMalloc(&info, sizeof(int));
  cusolverDnDsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, held, n, values, &most);
  cusolverDnDgesvd_bufferSize(handle, n, n, &size);
  most = size > most ? size : most;
  cudaMalloc(&work, most * sizeof(double));
  for (int i = 0; i < n * n; i++) first[i] = a[i] + a[i % n * n + i / n];
  cudaMemcpy(held, first, bytes, cudaMemcpyHostToDevice);
  cusolverDnDsyevd(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, held, n, values, work, most, info);
  cudaMemcpy(first, held, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(w, values, n * sizeof(double), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) w[i] *= first[i * n] * first[i * n];
  cudaMemcpy(held, a, bytes, cudaMemcpyHostToDevice);
  cusolverDnDgesvd(handle, 'S', 'S', n, n, held, n, values, vectors, n, vectors + n * n, n, work, most, nullptr, info);
  cudaMemcpy(s, values, n * sizeof(double), cudaMemcpyDeviceToHost);
  delete[] first;
  cusolverDnDestroy(handle);
}
