// Softmax of the rows of a matrix, one block per row: warps reduce by shuffles, the first warp reduces the warps.
__device__ double warp_max(double v) {
  for (int o = 16; o > 0; o >>= 1) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

__device__ double warp_sum(double v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}

extern "C" __global__ void softmax(int rows, int n, const double *x, double *y) {
  __shared__ double part[32], whole[2];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, row = blockIdx.x;
  double top = -1e300;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmax(top, x[row * n + i]);
  top = warp_max(top);
  if (lane == 0) part[warp] = top;
  __syncthreads();
  if (warp == 0) {
    top = warp_max(lane < warps ? part[lane] : -1e300);
    if (lane == 0) whole[0] = top;
  }
  __syncthreads();
  top = whole[0];
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += exp(x[row * n + i] - top);
  sum = warp_sum(sum);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warp_sum(lane < warps ? part[lane] : 0.0);
    if (lane == 0) whole[1] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[row * n + i] = exp(x[row * n + i] - top) / whole[1];
}
