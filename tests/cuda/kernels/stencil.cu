// A nonlinear stencil in shared memory with a halo; threads beyond the end leave before the barrier.
#ifndef SIZE
#define SIZE 16
#endif
extern "C" __global__ void stencil(int n, double a, const double *u, double *v) {
  __shared__ double tile[SIZE + 2];
  int i = blockIdx.x * SIZE + threadIdx.x, t = threadIdx.x + 1;
  if (i >= n) return;
  double here = u[i];
  tile[t] = here;
  if (threadIdx.x == 0) tile[0] = i > 0 ? u[i - 1] : 0.0;
  if (threadIdx.x == SIZE - 1 || i == n - 1) tile[t + 1] = i + 1 < n ? u[i + 1] : 0.0;
  __syncthreads();
  double flux = tile[t - 1] - 2 * tile[t] + tile[t + 1];
  v[i] = here + a * flux * (1 + here * tile[t + 1]);
}
