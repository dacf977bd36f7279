// Lagrangian hydrodynamics on hexahedra: gathers eight corners, volume and its characteristic length, then an equation
// of state chosen by region. Long straight-line code and a switch.
__device__ double triple(double x1, double y1, double z1, double x2, double y2, double z2, double x3, double y3, double z3) {
  return x1 * (y2 * z3 - z2 * y3) + x2 * (z1 * y3 - y1 * z3) + x3 * (y1 * z2 - z1 * y2);
}

extern "C" __global__ void hydro_element(int elements, int nodes, const int *corner, const int *region, const double *x,
                                         const double *energy, double *volume, double *pressure) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= elements) return;
  double px[8], py[8], pz[8];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int node = corner[8 * e + k];
    px[k] = x[3 * node], py[k] = x[3 * node + 1], pz[k] = x[3 * node + 2];
  }
  double d61x = px[6] - px[1], d61y = py[6] - py[1], d61z = pz[6] - pz[1];
  double d70x = px[7] - px[0], d70y = py[7] - py[0], d70z = pz[7] - pz[0];
  double d63x = px[6] - px[3], d63y = py[6] - py[3], d63z = pz[6] - pz[3];
  double d20x = px[2] - px[0], d20y = py[2] - py[0], d20z = pz[2] - pz[0];
  double d50x = px[5] - px[0], d50y = py[5] - py[0], d50z = pz[5] - pz[0];
  double d64x = px[6] - px[4], d64y = py[6] - py[4], d64z = pz[6] - pz[4];
  double d31x = px[3] - px[1], d31y = py[3] - py[1], d31z = pz[3] - pz[1];
  double d72x = px[7] - px[2], d72y = py[7] - py[2], d72z = pz[7] - pz[2];
  double d43x = px[4] - px[3], d43y = py[4] - py[3], d43z = pz[4] - pz[3];
  double d57x = px[5] - px[7], d57y = py[5] - py[7], d57z = pz[5] - pz[7];
  double d14x = px[1] - px[4], d14y = py[1] - py[4], d14z = pz[1] - pz[4];
  double d25x = px[2] - px[5], d25y = py[2] - py[5], d25z = pz[2] - pz[5];
  double v = triple(d31x + d72x, d31y + d72y, d31z + d72z, d63x, d63y, d63z, d20x, d20y, d20z) +
             triple(d43x + d57x, d43y + d57y, d43z + d57z, d64x, d64y, d64z, d70x, d70y, d70z) +
             triple(d14x + d25x, d14y + d25y, d14z + d25z, d61x, d61y, d61z, d50x, d50y, d50z);
  v *= 1.0 / 12.0;
  double compression = 1 / v - 1, p;
  switch (region[e]) {
    case 0: p = 2.0 / 3.0 * energy[e] / v; break;
    case 1: p = compression * (1.5 + compression) + 0.4 * energy[e] / v; break;
    case 2: p = exp(-0.1 * v) * energy[e] + cbrt(v); break;
    default: p = 0.1 * energy[e] * energy[e]; break;
  }
  volume[e] = v;
  pressure[e] = p;
}
