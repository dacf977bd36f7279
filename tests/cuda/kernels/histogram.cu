// A smooth histogram: every sample is shared between two bins, first in shared memory, then in the result.
#define BINS 6
extern "C" __global__ void histogram(int n, const double *x, const double *w, double *bins) {
  __shared__ double local[BINS];
  if (threadIdx.x < BINS) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double place = fmin(fmax(x[i], 0.0), 1.0) * (BINS - 1);
    int bin = min((int)place, BINS - 2);
    double f = place - bin;
    atomicAdd(&local[bin], w[i] * (1 - f));
    atomicAdd(&local[bin + 1], w[i] * f * f);
  }
  __syncthreads();
  if (threadIdx.x < BINS) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
