// Gravity between bodies, in tiles of shared memory.
extern "C" __global__ void bodies(int n, double softening, const double *position, const double *mass, double *force) {
  extern __shared__ double4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double3 own = make_double3(0, 0, 0), sum = make_double3(0, 0, 0);
  if (i < n) own = make_double3(position[3 * i], position[3 * i + 1], position[3 * i + 2]);
  for (int start = 0; start < n; start += blockDim.x) {
    int j = start + threadIdx.x;
    tile[threadIdx.x] =
        j < n ? make_double4(position[3 * j], position[3 * j + 1], position[3 * j + 2], mass[j]) : make_double4(0, 0, 0, 0);
    __syncthreads();
    for (int k = 0; k < blockDim.x; k++) {
      double dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
      double inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
      double strength = tile[k].w * inverse * inverse * inverse;
      sum.x += strength * dx, sum.y += strength * dy, sum.z += strength * dz;
    }
    __syncthreads();
  }
  if (i < n) force[3 * i] = sum.x, force[3 * i + 1] = sum.y, force[3 * i + 2] = sum.z;
}
