// cuFFT around a kernel: a product with a filter's transform is a convolution; in two dimensions, a transform and back.
#include <cufft.h>

__global__ void multiply(cufftDoubleComplex *a, const cufftDoubleComplex *b, int n, double scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = cuCmul(cuCmul(a[i], b[i]), make_cuDoubleComplex(scale, 0));
}

void convolve(int n, int rows, double *x, double *filters, double *y) {
  int half = n / 2 + 1, count = rows * half;
  cufftDoubleComplex *a, *b;
  cudaMalloc(&a, count * sizeof(*a)), cudaMalloc(&b, count * sizeof(*b));
  cufftHandle there, back;
  cufftPlan1d(&there, n, CUFFT_D2Z, rows), cufftPlan1d(&back, n, CUFFT_Z2D, rows);
  cufftExecD2Z(there, x, a), cufftExecD2Z(there, filters, b);
  multiply<<<(count + 63) / 64, 64>>>(a, b, count, 1.0 / n);
  cufftExecZ2D(back, a, y);
  cufftDestroy(there), cufftDestroy(back);
  cudaFree(a), cudaFree(b);
}

// A row of the plan is every other number of a longer row.
void every_other(int m, int n, double *x, double *y) {
  int extents[] = {m, n}, held[] = {m, n};
  cufftHandle plan;
  cufftPlanMany(&plan, 2, extents, held, 2, 2 * m * n, extents, 1, m * n, CUFFT_Z2Z, 1);
  cufftExecZ2Z(plan, (cufftDoubleComplex *)x, (cufftDoubleComplex *)y, CUFFT_FORWARD);
  cufftDestroy(plan);
}
// In place, where rows of real numbers have room for n / 2 + 1 complex ones: a plane there, and its rows back.
int in_place(int m, int n, const double *x, double *y) {
  int half = n / 2 + 1;
  double *a;
  size_t row = n * sizeof(double), held = 2 * half * sizeof(double);
  cudaMalloc(&a, m * held);
  cudaMemcpy2D(a, held, x, row, row, m, cudaMemcpyHostToDevice);
  cufftHandle there, back;
  cufftPlan2d(&there, m, n, CUFFT_D2Z), cufftPlan1d(&back, n, CUFFT_Z2D, m);
  cufftExecD2Z(there, a, (cufftDoubleComplex *)a);
  cufftExecZ2D(back, (cufftDoubleComplex *)a, a);
  cudaMemcpy2D(y, row, a, held, row, m, cudaMemcpyDeviceToHost);
  cufftDestroy(there), cufftDestroy(back), cudaFree(a);
  return 0;
}
