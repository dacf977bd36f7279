// Surfaces of arrays in two and three dimensions, read beyond their edges, and written.
#include <cuda_runtime.h>

__global__ void square(cudaSurfaceObject_t at, int width) {
  float2 v = surf2Dread<float2>(at, threadIdx.x * sizeof(float2), blockIdx.x);
  surf2Dwrite(make_float2(v.x * v.y, v.y), at, threadIdx.x * sizeof(float2), blockIdx.x);
}
__global__ void blur(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  int x = threadIdx.x, y = blockIdx.x;
  float sum = 0, clamped;
  for (int i = -1; i <= 1; i++) {
    sum += surf2Dread<float2>(from, (x + i) * sizeof(float2), y - i, cudaBoundaryModeZero).x;
    surf2Dread(&clamped, from, (2 * x + i) * (int)sizeof(float), y, cudaBoundaryModeClamp);
    sum += 2 * clamped;
  }
  surf3Dwrite(sum, to, x * sizeof(float), y, 1);
}
static cudaSurfaceObject_t surface(cudaArray_t array) {
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaSurfaceObject_t made = 0;
  cudaCreateSurfaceObject(&made, &what);
  return made;
}
void smooth(const float2 *image, float *out, int width, int height) {
  cudaChannelFormatDesc pairs = cudaCreateChannelDesc<float2>(), numbers = cudaCreateChannelDesc<float>();
  cudaArray_t in, twice;
  cudaMallocArray(&in, &pairs, width, height, cudaArraySurfaceLoadStore);
  cudaMalloc3DArray(&twice, &numbers, make_cudaExtent(width, height, 2), cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(in, 0, 0, image, width * 8, width * 8, height, cudaMemcpyHostToDevice);
  cudaSurfaceObject_t from = surface(in), to = surface(twice);
  square<<<height, width>>>(from, width);
  blur<<<height, width>>>(from, to);
  cudaMemcpy((void *)out, (float *)twice->data + width * height, width * height * 4, cudaMemcpyDeviceToHost);
  cudaDestroySurfaceObject(from);
  cudaDestroySurfaceObject(to);
  cudaFreeArray(in);
  cudaFreeArray(twice);
}
