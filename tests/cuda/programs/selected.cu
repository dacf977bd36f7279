// What CUB selects and sums by keys, and Thrust's placeholders.
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/transform.h>

struct Above {
  double least;
  __host__ __device__ bool operator()(const double &x) const { return x > least; }
};

// y: the elements above `least`, the first of which counts as scale; sums: of x over runs of equal keys. The place of the
// largest element is left out of what is scaled.
int selected(const double *x, const int *keys, double *y, double *sums, int n, double least) {
  void *memory = nullptr;
  size_t bytes = 0;
  int *count, *runs, *unique, kept;
  cub::KeyValuePair<int, double> *largest, found;
  cudaMalloc(&count, sizeof(int));
  cudaMalloc(&runs, sizeof(int));
  cudaMalloc(&unique, n * sizeof(int));
  cudaMalloc(&largest, sizeof found);
  cub::DeviceSelect::If(memory, bytes, x, y, count, n, Above{least});
  cudaMalloc(&memory, bytes);
  cub::DeviceSelect::If(memory, bytes, x, y, count, n, Above{least});
  cub::DeviceReduce::ReduceByKey(memory, bytes, keys, unique, x, sums, runs, cub::Sum(), n);
  cudaMemcpy(&kept, count, sizeof kept, cudaMemcpyDeviceToHost);
  cub::DeviceReduce::ArgMax(memory, bytes, y, largest, kept);
  cudaMemcpy(&found, largest, sizeof found, cudaMemcpyDeviceToHost);
  thrust::device_vector<double> held(y, y + kept);
  double scale = held[0];
  using namespace thrust::placeholders;
  thrust::transform(held.begin(), held.end(), held.begin(), held.begin(), (_1 + 2 * _2) / scale - -_1);
  held[found.key] = found.value;
  thrust::copy(held.begin(), held.end(), y);
  cub::DeviceSelect::Unique(memory, bytes, keys, unique, runs, n);
  cudaMemcpy(&kept, runs, sizeof kept, cudaMemcpyDeviceToHost);
  return kept;
}
