// Thrust's vectors and algorithms, with functions of host and device and of the device alone, around a kernel.
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

struct saxpy {
  const double a;
  saxpy(double a) : a(a) {}
  __host__ __device__ double operator()(const double &x, const double &y) const { return a * x + y; }
};
struct sine {
  __device__ double operator()(double x) const { return sin(x); }
};

__global__ void triple(double *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 3;
}

double combine(const double *x, double *y, int n, double a) {
  thrust::host_vector<double> given(x, x + n);
  thrust::device_vector<double> dx = given, dy(y, y + n), dz(n);
  thrust::transform(dx.begin(), dx.end(), dy.begin(), dy.begin(), saxpy(a));
  triple<<<(n + 63) / 64, 64>>>(thrust::raw_pointer_cast(dy.data()), n);
  thrust::transform(thrust::device, dy.begin(), dy.end(), dz.begin(), sine());
  thrust::inclusive_scan(dz.begin(), dz.end(), dz.begin());
  double squares = thrust::transform_reduce(dx.begin(), dx.end(), thrust::square<double>(), 0.0, thrust::plus<double>());
  double product = thrust::inner_product(dx.begin(), dx.end(), dz.begin(), 1.0);
  thrust::copy(dz.begin(), dz.end(), y);
  return squares * product + thrust::reduce(dy.begin(), dy.end());
}

struct positive {
  __device__ bool operator()(double x) const { return x > 0; }
};

// The positive numbers of x, sorted and weighed by their places, those with one key added up.
void selected(const double *x, const int *keys, double *y, int *counts, int n) {
  thrust::device_vector<double> dx(x, x + n), kept(n), sums(n);
  thrust::device_vector<int> dk(keys, keys + n), found(n);
  thrust::stable_sort_by_key(dk.begin(), dk.end(), dx.begin());
  auto ends = thrust::reduce_by_key(dk.begin(), dk.end(), dx.begin(), found.begin(), sums.begin());
  auto last = thrust::copy_if(thrust::device, sums.begin(), ends.second, kept.begin(), positive());
  counts[0] = ends.first - found.begin();
  counts[1] = last - kept.begin();
  counts[2] = thrust::count_if(dx.begin(), dx.end(), positive());
  counts[3] = thrust::count(dk.begin(), dk.end(), 2);
  for (int i = 0; i < counts[1]; i++) y[i] = kept[i] * kept[i];
}
