// Blocks that wait for each other.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void relax(double *u, double *v, int n, int rounds) {
  __shared__ double tile[32];
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank(), t = threadIdx.x;
  double mine = u[i], sum = mine;
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int r = 0; r < rounds; r++) {
    tile[t] = u[i] * mine;
    grid.sync();
    v[i] = 0.3 * (u[(i + 1) % n] + u[(i + n - 1) % n]) + tile[31 - t] + sum;
    cg::sync(grid);
    u[i] = v[i];
    grid.sync();
  }
}

void together(double *u, int n, int rounds) {
  double *a, *b;
  cudaMalloc(&a, n * sizeof(double));
  cudaMalloc(&b, n * sizeof(double));
  cudaMemcpy(a, u, n * sizeof(double), cudaMemcpyHostToDevice);
  void *arguments[] = {&a, &b, &n, &rounds};
  cudaLaunchCooperativeKernel(relax, n / 32, 32, arguments, 0, 0);
  cudaMemcpy(u, a, n * sizeof(double), cudaMemcpyDeviceToHost);
}

void of_data(double *u, int n, int rounds, int *blocks) {
  void *arguments[] = {&u, &u, &n, &rounds};
  cudaLaunchCooperativeKernel(relax, blocks[0], 32, arguments, 0, 0);
}
