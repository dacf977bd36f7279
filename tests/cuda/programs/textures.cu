// Textures of linear memory, of rows with a pitch, and of an array.
#include <cuda_runtime.h>
#include <cstring>
__global__ void read(cudaTextureObject_t line, cudaTextureObject_t rows, cudaTextureObject_t arr, float *y, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (x >= nx) return;
  float4 quad = tex1Dfetch<float4>(line, x / 4);
  float a = tex2D<float>(rows, x - 1 + 0.5f, r + 1 + 0.5f), b = tex2D<float>(arr, x + 1.5f, r + 0.5f);
  y[r * nx + x] = quad.x * quad.w * a + b * b;
}
void fetch(const float *v, const float *u, float *y, int nx, int ny) {
  float *dv, *du, *dy; size_t pitch;
  cudaMalloc(&dv, nx * 4); cudaMallocPitch(&du, &pitch, nx * 4, ny); cudaMalloc(&dy, nx * ny * 4);
  cudaMemcpy(dv, v, nx * 4, cudaMemcpyHostToDevice);
  cudaMemcpy2D(du, pitch, u, nx * 4, nx * 4, ny, cudaMemcpyHostToDevice);
  cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  cudaArray_t array; cudaMallocArray(&array, &f, nx, ny);
  cudaMemcpy2DToArray(array, 0, 0, u, nx * 4, nx * 4, ny, cudaMemcpyHostToDevice);
  cudaResourceDesc res; memset(&res, 0, sizeof res);
  cudaTextureDesc td; memset(&td, 0, sizeof td);
  td.readMode = cudaReadModeElementType;
#ifdef INTERPOLATED
  td.filterMode = cudaFilterModeLinear;
#endif
  cudaTextureObject_t t1 = 0, t2 = 0, t3;
  res.resType = cudaResourceTypeLinear; res.res.linear.devPtr = dv; res.res.linear.desc = cudaCreateChannelDesc<float4>();
  res.res.linear.sizeInBytes = nx * 4;
  cudaCreateTextureObject(&t1, &res, &td, NULL);
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
  memset(&res, 0, sizeof res);
  res.resType = cudaResourceTypePitch2D; res.res.pitch2D.devPtr = du; res.res.pitch2D.desc = f;
  res.res.pitch2D.width = nx; res.res.pitch2D.height = ny; res.res.pitch2D.pitchInBytes = pitch;
  cudaCreateTextureObject(&t2, &res, &td, NULL);
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeBorder;
  memset(&res, 0, sizeof res);
  res.resType = cudaResourceTypeArray; res.res.array.array = array;
  cudaCreateTextureObject(&t3, &res, &td, NULL);
  read<<<dim3((nx + 31) / 32, ny), 32>>>(t1, t2, t3, dy, nx, ny);
  cudaMemcpy(y, dy, nx * ny * 4, cudaMemcpyDeviceToHost);
  cudaDestroyTextureObject(t1); cudaFreeArray(array); cudaFree(dv); cudaFree(du); cudaFree(dy);
}
