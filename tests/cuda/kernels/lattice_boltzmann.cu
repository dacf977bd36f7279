// One step of the D2Q9 lattice: pull streaming with periodic borders, BGK collision, two-dimensional blocks.
__constant__ int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ double weight[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

extern "C" __global__ void lattice_boltzmann(int ny, int nx, double omega, const double *f, double *g) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny) return;
  double in[9], rho = 0, ux = 0, uy = 0;
  for (int q = 0; q < 9; q++) {
    int sx = (x - cx[q] + nx) % nx, sy = (y - cy[q] + ny) % ny;
    in[q] = f[(q * ny + sy) * nx + sx];
    rho += in[q];
    ux += cx[q] * in[q];
    uy += cy[q] * in[q];
  }
  ux /= rho, uy /= rho;
  double square = 1.5 * (ux * ux + uy * uy);
  for (int q = 0; q < 9; q++) {
    double cu = 3 * (cx[q] * ux + cy[q] * uy);
    double equilibrium = weight[q] * rho * (1 + cu + 0.5 * cu * cu - square);
    g[(q * ny + y) * nx + x] = in[q] + omega * (equilibrium - in[q]);
  }
}
