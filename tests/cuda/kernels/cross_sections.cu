// Macroscopic cross-sections: for each lookup, a binary search in the energy grid of every nuclide of a material, linear
// interpolation of five reaction channels, and a sum weighted by density. Structures go by value between functions.
struct Grid {
  const double *energy;
  const double *channels;
  int points;
};

struct Channels {
  double value[5];
};

__device__ int lower_point(Grid grid, double energy) {
  int low = 0, high = grid.points - 1;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (grid.energy[middle] > energy)
      high = middle;
    else
      low = middle;
  }
  return low;
}

__device__ Channels interpolate(Grid grid, double energy) {
  int at = lower_point(grid, energy);
  double f = (energy - grid.energy[at]) / (grid.energy[at + 1] - grid.energy[at]);
  Channels result;
  for (int c = 0; c < 5; c++) result.value[c] = (1 - f) * grid.channels[5 * at + c] + f * grid.channels[5 * (at + 1) + c];
  return result;
}

extern "C" __global__ void cross_sections(int lookups, int nuclides, int points, const double *energy, const double *grid,
                                          const double *channels, const double *density, double *total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= lookups) return;
  double sum[5] = {0, 0, 0, 0, 0};
  for (int n = 0; n < nuclides; n++) {
    Grid one = {grid + n * points, channels + 5 * n * points, points};
    Channels micro = interpolate(one, energy[i]);
    for (int c = 0; c < 5; c++) sum[c] += density[n] * micro.value[c];
  }
  for (int c = 0; c < 5; c++) total[5 * i + c] = sum[c];
}
