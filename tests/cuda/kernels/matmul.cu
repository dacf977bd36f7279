// C = A B + beta C in shared tiles with ragged edges; a template over the type.
#ifndef TILE
#define TILE 4
#endif
template <class T> __device__ T at(const T *m, int rows, int columns, int i, int j) {
  return i < rows && j < columns ? m[i * columns + j] : T(0);
}

extern "C" __global__ void matmul(int m, int k, int n, double beta, const double *a, const double *b, double *c) {
  __shared__ double ta[TILE][TILE], tb[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  double sum = 0;
  for (int p = 0; p < k; p += TILE) {
    ta[y][x] = at(a, m, k, row, p + x);
    tb[y][x] = at(b, k, n, p + y, column);
    __syncthreads();
    for (int q = 0; q < TILE; q++) sum += ta[y][q] * tb[q][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum + beta * c[row * n + column];
}
