// A weighted norm: warp shuffles, dynamic shared memory, one atomic per block. Any block size, whole warps or not.
extern "C" __global__ void reduce(int n, const double *x, const double *w, double *total) {
  extern __shared__ double part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  double v = i < n ? w[i] * x[i] * x[i] : 0.0;
#pragma unroll
  for (int o = 16; o; o /= 2) {
    double other = __shfl_down_sync(0xffffffffu, v, o);
    if (lane + o < 32 && threadIdx.x + o < blockDim.x) v += other;
  }
  if (lane == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    double sum = 0;
    for (int k = 0; k < (blockDim.x + 31) / 32; k++) sum += part[k];
    atomicAdd(total, sqrt(1 + sum * sum));
  }
}
