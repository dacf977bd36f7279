// Thrust around its iterators: tuples, transformed and permuted elements; what moves and looks for elements.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/tuple.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>
#include <thrust/unique.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/merge.h>
#include <thrust/find.h>
#include <thrust/binary_search.h>
#include <thrust/adjacent_difference.h>
#include <thrust/transform_reduce.h>
#include <thrust/scan.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/logical.h>

struct dot_sum {
  template <class T> __host__ __device__ double operator()(const T &t) const {
    return thrust::get<0>(t) * thrust::get<1>(t) + sin(thrust::get<0>(t));
  }
};
struct axpy {
  double a;
  template <class T> __host__ __device__ void operator()(T t) const {
    thrust::get<2>(t) = a * thrust::get<0>(t) + thrust::get<1>(t);
  }
};
struct sq { __host__ __device__ double operator()(double x) const { return x * x; } };
struct pos { __host__ __device__ bool operator()(double x) const { return x > 0; } };
struct swapped {
  __host__ __device__ thrust::tuple<double, double> operator()(const thrust::tuple<double, double> &t) const {
    return thrust::make_tuple(thrust::get<1>(t), 2 * thrust::get<0>(t));
  }
};
double run(const double *x, const double *y, const int *map, double *z, double *w, double *p, double *d, int n,
           double a) {
  thrust::device_vector<double> X(x, x + n), Y(y, y + n), Z(n), W(n), P(X), D(n);
  thrust::device_vector<int> M(map, map + n);
  auto first = thrust::make_zip_iterator(thrust::make_tuple(X.begin(), Y.begin(), Z.begin()));
  thrust::for_each(thrust::device, first, first + n, axpy{a});
  thrust::gather(M.begin(), M.end(), thrust::make_transform_iterator(X.begin(), sq()), W.begin());
  auto middle = thrust::stable_partition(P.begin(), P.end(), pos());
  double count = middle - P.begin();
  thrust::adjacent_difference(X.begin(), X.end(), D.begin());
  auto xy = thrust::make_zip_iterator(thrust::make_tuple(X.begin(), Y.begin()));
  double total = thrust::transform_reduce(xy, xy + n, dot_sum(), 0.0, thrust::plus<double>());
  thrust::transform(xy, xy + n, xy, swapped());
  auto permuted = thrust::make_permutation_iterator(Y.begin(), M.begin());
  total += thrust::reduce(X.begin(), X.end()) * thrust::reduce(permuted, permuted + 3);
  thrust::copy(Z.begin(), Z.end(), z);
  thrust::copy(W.begin(), W.end(), w);
  thrust::copy(thrust::make_reverse_iterator(P.end()), thrust::make_reverse_iterator(P.begin()), p);
  thrust::copy(D.begin(), D.end(), d);
  return total + 100 * count;
}
int keys(const double *x, int *key, double *sums, int *bound, int n) {
  thrust::device_vector<double> X(x, x + n), S(n);
  thrust::device_vector<int> K(key, key + n), B(4);
  thrust::sort_by_key(K.begin(), K.end(), X.begin());
  auto e = thrust::reduce_by_key(K.begin(), K.end(), X.begin(), thrust::make_discard_iterator(), S.begin());
  int m = e.second - S.begin();
  thrust::copy(S.begin(), S.begin() + m, sums);
  K.erase(thrust::unique(K.begin(), K.end()), K.end());
  thrust::counting_iterator<int> q(0);
  thrust::lower_bound(K.begin(), K.end(), q, q + 4, B.begin());
  thrust::copy(B.begin(), B.end(), bound);
  K.erase(thrust::remove(K.begin(), K.end(), 2), K.end());
  auto [lo, hi] = thrust::make_tuple(K.front(), K.back());
  return 100 * K.size() + 10 * hi + lo + 1000 * (thrust::find(K.begin(), K.end(), 3) - K.begin()) + 10000 * thrust::all_of(X.begin(), X.end(), pos());
}
