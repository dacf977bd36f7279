// Discontinuous Galerkin: one block per element, one thread per node of a P x P tensor element. Derivatives by a shared
// differentiation matrix, flux through shared memory, two barriers.
#define P 4
extern "C" __global__ void galerkin(int elements, const double *matrix, const double *jacobian, const double *u, double *r) {
  __shared__ double d[P][P], flux_x[P][P], flux_y[P][P];
  int i = threadIdx.x, j = threadIdx.y, e = blockIdx.x;
  d[j][i] = matrix[j * P + i];
  double value = u[(e * P + j) * P + i];
  flux_x[j][i] = 0.5 * value * value * jacobian[2 * e];
  flux_y[j][i] = sin(value) * jacobian[2 * e + 1];
  __syncthreads();
  double dx = 0, dy = 0;
#pragma unroll
  for (int k = 0; k < P; k++) {
    dx += d[i][k] * flux_x[j][k];
    dy += d[j][k] * flux_y[k][i];
  }
  __syncthreads();
  flux_x[j][i] = dx + dy;
  __syncthreads();
  r[(e * P + j) * P + i] = flux_x[j][i] + 0.1 * flux_x[i][j] * value;
}
