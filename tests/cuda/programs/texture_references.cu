// Texture references: linear memory, C's and C++'s ways to bind, interpolation in two and three dimensions, and fractions.
#include <cuda.h>
#include <cuda_runtime.h>
texture<float4, 1, cudaReadModeElementType> quads;
static texture<float, cudaTextureType2D> image;
texture<float, 3> volume;
texture<uchar4, 1, cudaReadModeNormalizedFloat> colours;
__global__ void read(float *y, const float *at, int n) {
  register int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float4 quad = tex1Dfetch(quads, t);
  float x = at[t];
  y[t] = quad.x * quad.w + tex2D(image, x, 0.3f * x) * tex3D(volume, x, 1.2f, 0.5f * x) + tex1Dfetch(colours, t).z;
}
int sample(const float *u, const float *at, const unsigned char *c, float *y, int n) {
  float *du, *dy, *dx;
  void *dc;
  cudaMalloc(&du, 4 * n * sizeof(float)); cudaMalloc(&dy, n * sizeof(float)); cudaMalloc(&dx, n * sizeof(float)); cudaMalloc(&dc, 4 * n);
  cudaMemcpy(du, u, 4 * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dx, at, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dc, c, 4 * n, cudaMemcpyHostToDevice);
  cudaChannelFormatDesc four = cudaCreateChannelDesc<float4>(), one = cudaCreateChannelDesc<float>();
  cudaBindTexture(NULL, &quads, du, &four, 4 * n * sizeof(float));
  cudaBindTexture(0, colours, dc, 4 * n);
  image.filterMode = volume.filterMode = cudaFilterModeLinear;
  image.addressMode[0] = cudaAddressModeWrap; image.normalized = true;
  cudaBindTexture2D(0, image, du, one, n, 4, n * sizeof(float));
  cudaArray_t array;
  cudaExtent extent = make_cudaExtent(n / 2, 2, 4);
  cudaMalloc3DArray(&array, &one, extent);
  cudaMemcpy3DParms copy = {0};
  copy.srcPtr = make_cudaPitchedPtr((void *)u, n / 2 * sizeof(float), n / 2, 2);
  copy.dstArray = array; copy.extent = extent; copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  volume.addressMode[2] = cudaAddressModeBorder;
  cudaBindTextureToArray(volume, array);
  read<<<(n + 31) / 32, 32>>>(dy, dx, n);
  cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaUnbindTexture(quads); cudaFreeArray(array); cudaFree(du); cudaFree(dy); cudaFree(dx); cudaFree(dc);
  return CUDA_SUCCESS;
}
