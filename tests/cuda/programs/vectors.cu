// Thrust's vectors and algorithms, with functions of host and device and of the device alone, around a kernel.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
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
