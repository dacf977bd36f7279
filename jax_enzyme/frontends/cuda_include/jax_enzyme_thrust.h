// Thrust, as far as vectors and the common algorithms go: loops over elements are kernels, one thread runs what is in
// order (sums, scans). All of Thrust's headers that are there are this one.
#pragma once
#include "jax_enzyme_thrust_iterators.h"
#include "jax_enzyme_thrust_placeholders.h"
#include <algorithm>
#include <vector>

#define THRUST_VERSION 200500
#define THRUST_MAJOR_VERSION 2
#define THRUST_MINOR_VERSION 5

namespace thrust {

template <class T> struct device_ptr {
  typedef std::random_access_iterator_tag iterator_category;
  typedef T value_type;
  typedef std::ptrdiff_t difference_type;
  typedef T *pointer;
  typedef T &reference;
  T *place;
  __JE_MEMBER device_ptr(T *p = nullptr) : place(p) {}
  __JE_MEMBER T *get() const { return place; }
  __JE_MEMBER T &operator*() const { return *place; }
  __JE_MEMBER T *operator->() const { return place; }
  __JE_MEMBER T &operator[](std::ptrdiff_t i) const { return place[i]; }
  __JE_MEMBER device_ptr operator+(std::ptrdiff_t n) const { return device_ptr(place + n); }
  __JE_MEMBER device_ptr operator-(std::ptrdiff_t n) const { return device_ptr(place - n); }
  __JE_MEMBER std::ptrdiff_t operator-(device_ptr o) const { return place - o.place; }
  __JE_MEMBER device_ptr &operator+=(std::ptrdiff_t n) { return place += n, *this; }
  __JE_MEMBER device_ptr &operator++() { return ++place, *this; }
  __JE_MEMBER device_ptr &operator--() { return --place, *this; }
  __JE_MEMBER bool operator==(device_ptr o) const { return place == o.place; }
  __JE_MEMBER bool operator!=(device_ptr o) const { return place != o.place; }
  __JE_MEMBER bool operator<(device_ptr o) const { return place < o.place; }
  __JE_MEMBER operator device_ptr<const T>() const { return device_ptr<const T>(place); }
};
template <class T> __JE_MEMBER device_ptr<T> device_pointer_cast(T *p) { return device_ptr<T>(p); }
template <class T> __JE_MEMBER T *raw_pointer_cast(device_ptr<T> p) { return p.get(); }
template <class T> __JE_MEMBER T *raw_pointer_cast(T *p) { return p; }
template <class T> device_ptr<T> device_malloc(size_t n) {
  T *place;
  cudaMalloc(&place, n * sizeof(T));
  return device_ptr<T>(place);
}
template <class T> void device_free(device_ptr<T> p) { cudaFree(p.get()); }

template <class T> struct host_vector : std::vector<T> {
  using std::vector<T>::vector;
  host_vector() {}
  template <class V, class = typename V::is_device_vector> host_vector(const V &v) : std::vector<T>(v.raw(), v.raw() + v.size()) {}
};

template <class T> class device_vector {
  std::vector<T> held;

 public:
  typedef void is_device_vector;
  typedef T value_type;
  typedef T &reference;
  typedef size_t size_type;
  typedef device_ptr<T> iterator;
  typedef device_ptr<const T> const_iterator;
  device_vector() {}
  explicit device_vector(size_t n, T value = T()) : held(n, value) {}
  template <class U> device_vector(const std::vector<U> &v) : held(v.begin(), v.end()) {}
  template <class I, class = typename std::iterator_traits<I>::iterator_category>
  device_vector(I first, I last) : held(first, last) {}
  template <class U> device_vector &operator=(const std::vector<U> &v) { return held.assign(v.begin(), v.end()), *this; }
  size_t size() const { return held.size(); }
  bool empty() const { return held.empty(); }
  void resize(size_t n, T value = T()) { held.resize(n, value); }
  void reserve(size_t n) { held.reserve(n); }
  void push_back(const T &value) { held.push_back(value); }
  void clear() { held.clear(); }
  T *raw() { return held.data(); }
  const T *raw() const { return held.data(); }
  iterator data() { return iterator(raw()); }
  const_iterator data() const { return const_iterator(raw()); }
  iterator begin() { return data(); }
  iterator end() { return data() + size(); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  const_iterator cbegin() const { return data(); }
  const_iterator cend() const { return data() + size(); }
  T &operator[](size_t i) { return held[i]; }
  const T &operator[](size_t i) const { return held[i]; }
  iterator erase(iterator first, iterator last) {
    held.erase(held.begin() + (first - begin()), held.begin() + (last - begin()));
    return first;
  }
  template <class I, class = typename std::iterator_traits<I>::iterator_category> void assign(I first, I last) {
    held.assign(first, last);
  }
  void swap(device_vector &o) { held.swap(o.held); }
  void pop_back() { held.pop_back(); }
  void shrink_to_fit() {}
  size_t capacity() const { return held.capacity(); }
  T &front() { return held.front(); }
  T &back() { return held.back(); }
};

// ---- functions

#define __JE_FUNCTION(name, T, expression)                                                           \
  template <class U = void> struct name {                                                            \
    __JE_MEMBER T operator()(const U &a, const U &b) const { return expression; }                    \
  };                                                                                                 \
  template <> struct name<void> {                                                                    \
    template <class A> __JE_MEMBER auto operator()(const A &a, const A &b) const { return expression; } \
  };
__JE_FUNCTION(plus, U, a + b)
__JE_FUNCTION(minus, U, a - b)
__JE_FUNCTION(multiplies, U, a *b)
__JE_FUNCTION(divides, U, a / b)
__JE_FUNCTION(maximum, U, a < b ? b : a)
__JE_FUNCTION(minimum, U, b < a ? b : a)
__JE_FUNCTION(less, bool, a < b)
__JE_FUNCTION(greater, bool, b < a)
__JE_FUNCTION(equal_to, bool, a == b)
__JE_FUNCTION(not_equal_to, bool, !(a == b))
__JE_FUNCTION(less_equal, bool, !(b < a))
__JE_FUNCTION(greater_equal, bool, !(a < b))
__JE_FUNCTION(modulus, U, a % b)
__JE_FUNCTION(logical_and, bool, a &&b)
__JE_FUNCTION(logical_or, bool, a || b)
__JE_FUNCTION(bit_and, U, a &b)
__JE_FUNCTION(bit_or, U, a | b)
__JE_FUNCTION(bit_xor, U, a ^ b)
#undef __JE_FUNCTION
template <class T> struct negate {
  __JE_MEMBER T operator()(const T &a) const { return -a; }
};
template <class T> struct square {
  __JE_MEMBER T operator()(const T &a) const { return a * a; }
};
template <class T> struct identity {
  __JE_MEMBER T operator()(const T &a) const { return a; }
};

// ---- what runs where, which is all the same

struct execution {
  execution on(cudaStream_t) const { return {}; }
};
static const execution device, host, seq;
namespace cuda {
static const execution par, par_nosync;
}
namespace omp {
static const execution par;
}

// ---- kernels

template <class I, class F> __global__ void __je_each(I first, std::ptrdiff_t n, F f) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n) f(first[i]);
}
template <class I, class O, class F> __global__ void __je_map(I first, std::ptrdiff_t n, O to, F f) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n) to[i] = f(first[i]);
}
template <class I, class J, class O, class F> __global__ void __je_map(I first, std::ptrdiff_t n, J second, O to, F f) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n) to[i] = f(first[i], second[i]);
}
template <class I, class T, class F, class G> __global__ void __je_reduce(I first, std::ptrdiff_t n, T *total, F f, G g) {
  T sum = *total;
  for (std::ptrdiff_t i = 0; i < n; i++) sum = g(sum, f(first[i]));
  *total = sum;
}
template <class I, class J, class T, class G, class F>
__global__ void __je_product(I first, std::ptrdiff_t n, J second, T *total, G g, F f) {
  T sum = *total;
  for (std::ptrdiff_t i = 0; i < n; i++) sum = g(sum, f(first[i], second[i]));
  *total = sum;
}
template <class I, class O, class T, class G>
__global__ void __je_scan(I first, std::ptrdiff_t n, O to, T sum, G g, bool whole) {
  for (std::ptrdiff_t i = 0; i < n; i++) {
    T value = first[i], next = i == 0 && whole ? value : g(sum, value);
    to[i] = whole ? next : sum;
    sum = next;
  }
}
// What keeps some of the numbers says how many.
template <class I, class S, class O, class P>
__global__ void __je_select(I first, std::ptrdiff_t n, S asked, O to, P keeps, std::ptrdiff_t *count) {
  for (std::ptrdiff_t i = 0; i < n; i++)
    if (keeps(asked[i])) to[(*count)++] = first[i];
}
template <class K, class V, class L, class W, class E, class T, class G>
__global__ void __je_reduce_by_key(K key, std::ptrdiff_t n, V value, L keys, W sums, E equal, T sum, G g, std::ptrdiff_t *count) {
  std::ptrdiff_t last = -1;
  for (std::ptrdiff_t i = 0; i < n; i++) {
    sum = i > 0 && equal(key[i - 1], key[i]) ? g(sum, value[i]) : T(value[i]);
    if (i == 0 || !equal(key[i - 1], key[i])) ++last;
    keys[last] = key[i];
    sums[last] = sum;
  }
  *count = last + 1;
}
template <class K, class V, class O, class E, class T, class G>
__global__ void __je_scan_by_key(K key, std::ptrdiff_t n, V value, O to, E equal, T start, G g, bool whole) {
  T sum = start;
  for (std::ptrdiff_t i = 0; i < n; i++) {
    bool first = i == 0 || !equal(key[i - 1], key[i]);
    T own = value[i];
    if (whole) {
      sum = first ? own : g(sum, own);
      to[i] = sum;
    } else {
      if (first) sum = start;
      to[i] = sum;
      sum = g(sum, own);
    }
  }
}
template <class P> struct __je_counted {
  P holds;
  template <class T> __JE_MEMBER std::ptrdiff_t operator()(const T &a) const { return holds(a) ? 1 : 0; }
};
template <class T> struct __je_equals {
  T value;
  __JE_MEMBER bool operator()(const T &a) const { return a == value; }
};
#define __JE_OVER(n) <<<(unsigned)(((n) + 255) / 256), 256>>>

// ---- algorithms, each with and without a policy

#define __JE_ALGORITHM(name)                                                                   \
  template <class... A> auto name(const execution &, A... a) -> decltype(name(a...)) { return name(a...); }

template <class I, class O> O copy(I first, I last, O to) {
  for (; first != last; ++first, ++to) *to = *first;
  return to;
}
template <class I, class T> void fill(I first, I last, T value) {
  for (; first != last; ++first) *first = value;
}
template <class I, class T> void sequence(I first, I last, T value, T step) {
  for (; first != last; ++first, value = value + step) *first = value;
}
template <class I, class T> void sequence(I first, I last, T value) { sequence(first, last, value, T(1)); }
template <class I> void sequence(I first, I last) {
  sequence(first, last, typename std::iterator_traits<I>::value_type(0));
}
template <class I, class F> I for_each(I first, I last, F f) {
  if (last != first) __je_each __JE_OVER(last - first)(first, last - first, f);
  return last;
}
template <class I, class F> I for_each_n(I first, std::ptrdiff_t n, F f) { return for_each(first, first + n, f); }
template <class I, class O, class F> O transform(I first, I last, O to, F f) {
  if (last != first) __je_map __JE_OVER(last - first)(first, last - first, to, f);
  return to + (last - first);
}
template <class I, class J, class O, class F> O transform(I first, I last, J second, O to, F f) {
  if (last != first) __je_map __JE_OVER(last - first)(first, last - first, second, to, f);
  return to + (last - first);
}
template <class I, class F, class T, class G> T transform_reduce(I first, I last, F f, T start, G g) {
  __je_reduce<<<1, 1>>>(first, last - first, &start, f, g);
  return start;
}
template <class I, class T, class G> T reduce(I first, I last, T start, G g) {
  return transform_reduce(first, last, identity<T>(), start, g);
}
template <class I, class T> T reduce(I first, I last, T start) { return reduce(first, last, start, plus<T>()); }
template <class I> auto reduce(I first, I last) {
  return reduce(first, last, typename std::iterator_traits<I>::value_type(0));
}
template <class I, class J, class T, class G, class F> T inner_product(I first, I last, J second, T start, G g, F f) {
  __je_product<<<1, 1>>>(first, last - first, second, &start, g, f);
  return start;
}
template <class I, class J, class T> T inner_product(I first, I last, J second, T start) {
  return inner_product(first, last, second, start, plus<T>(), multiplies<T>());
}
template <class I, class O, class G> O inclusive_scan(I first, I last, O to, G g) {
  __je_scan<<<1, 1>>>(first, last - first, to, typename std::iterator_traits<I>::value_type(0), g, true);
  return to + (last - first);
}
template <class I, class O> O inclusive_scan(I first, I last, O to) {
  return inclusive_scan(first, last, to, plus<typename std::iterator_traits<I>::value_type>());
}
template <class I, class O, class T, class G> O exclusive_scan(I first, I last, O to, T start, G g) {
  __je_scan<<<1, 1>>>(first, last - first, to, start, g, false);
  return to + (last - first);
}
template <class I, class O, class T> O exclusive_scan(I first, I last, O to, T start) {
  return exclusive_scan(first, last, to, start, plus<T>());
}
template <class I, class O> O exclusive_scan(I first, I last, O to) {
  return exclusive_scan(first, last, to, typename std::iterator_traits<I>::value_type(0));
}
template <class I> I max_element(I first, I last) {
  I found = first;
  for (; first != last; ++first)
    if (*found < *first) found = first;
  return found;
}
template <class I> I min_element(I first, I last) {
  I found = first;
  for (; first != last; ++first)
    if (*first < *found) found = first;
  return found;
}
template <class I, class F> void sort(I first, I last, F before) {
  if (first != last) std::sort(&*first, &*first + (last - first), before);
}
template <class I> void sort(I first, I last) { thrust::sort(first, last, less<typename std::iterator_traits<I>::value_type>()); }
template <class I> void stable_sort(I first, I last) { thrust::sort(first, last); }
template <class K, class V, class F> void sort_by_key(K first, K last, V values, F before) {
  std::ptrdiff_t n = last - first;
  std::vector<typename std::iterator_traits<K>::value_type> key(first, last);
  std::vector<typename std::iterator_traits<V>::value_type> value(values, values + n);
  std::vector<std::ptrdiff_t> order(n), merged(n);
  for (std::ptrdiff_t i = 0; i < n; i++) order[i] = i;
  for (std::ptrdiff_t width = 1; width < n; width *= 2) {
    for (std::ptrdiff_t low = 0; low < n; low += 2 * width) {
      std::ptrdiff_t middle = std::min(low + width, n), high = std::min(low + 2 * width, n), i = low, j = middle;
      for (std::ptrdiff_t k = low; k < high; k++) {
        bool left = j == high || (i < middle && !before(key[order[j]], key[order[i]]));
        merged[k] = left ? order[i++] : order[j++];
      }
    }
    order = merged;
  }
  for (std::ptrdiff_t i = 0; i < n; i++) {
    first[i] = key[order[i]];
    values[i] = value[order[i]];
  }
}
template <class K, class V> void sort_by_key(K first, K last, V values) {
  thrust::sort_by_key(first, last, values, less<typename std::iterator_traits<K>::value_type>());
}
template <class K, class V> void stable_sort_by_key(K first, K last, V values) { thrust::sort_by_key(first, last, values); }
template <class K, class V, class F> void stable_sort_by_key(K first, K last, V values, F before) {
  thrust::sort_by_key(first, last, values, before);
}
template <class I, class S, class O, class P> O copy_if(I first, I last, S asked, O to, P keeps) {
  std::ptrdiff_t count = 0;
  __je_select<<<1, 1>>>(first, last - first, asked, to, keeps, &count);
  return to + count;
}
template <class I, class O, class P> O copy_if(I first, I last, O to, P keeps) {
  return copy_if(first, last, first, to, keeps);
}
template <class I, class P> std::ptrdiff_t count_if(I first, I last, P holds) {
  return transform_reduce(first, last, __je_counted<P>{holds}, std::ptrdiff_t(0), plus<std::ptrdiff_t>());
}
template <class I, class T> std::ptrdiff_t count(I first, I last, const T &value) {
  return count_if(first, last, __je_equals<T>{value});
}
template <class K, class V, class L, class W, class E, class G>
pair<L, W> reduce_by_key(K first, K last, V values, L keys, W sums, E equal, G g) {
  std::ptrdiff_t count = 0;
  __je_reduce_by_key<<<1, 1>>>(first, last - first, values, keys, sums, equal, __je_value<V>(), g, &count);
  return {keys + count, sums + count};
}
template <class K, class V, class L, class W, class E>
pair<L, W> reduce_by_key(K first, K last, V values, L keys, W sums, E equal) {
  return reduce_by_key(first, last, values, keys, sums, equal, plus<__je_value<V>>());
}
template <class K, class V, class L, class W> pair<L, W> reduce_by_key(K first, K last, V values, L keys, W sums) {
  return reduce_by_key(first, last, values, keys, sums, equal_to<__je_value<K>>());
}
template <class K, class V, class O> O inclusive_scan_by_key(K first, K last, V values, O to) {
  typedef __je_value<V> T;
  __je_scan_by_key<<<1, 1>>>(first, last - first, values, to, equal_to<__je_value<K>>(), T(), plus<T>(), true);
  return to + (last - first);
}
template <class K, class V, class O, class T> O exclusive_scan_by_key(K first, K last, V values, O to, T start) {
  __je_scan_by_key<<<1, 1>>>(first, last - first, values, to, equal_to<__je_value<K>>(), start, plus<T>(), false);
  return to + (last - first);
}
template <class K, class V, class O> O exclusive_scan_by_key(K first, K last, V values, O to) {
  return exclusive_scan_by_key(first, last, values, to, __je_value<V>());
}

__JE_ALGORITHM(copy)
__JE_ALGORITHM(fill)
__JE_ALGORITHM(sequence)
__JE_ALGORITHM(for_each)
__JE_ALGORITHM(for_each_n)
__JE_ALGORITHM(transform)
__JE_ALGORITHM(transform_reduce)
__JE_ALGORITHM(reduce)
__JE_ALGORITHM(inner_product)
__JE_ALGORITHM(inclusive_scan)
__JE_ALGORITHM(exclusive_scan)
__JE_ALGORITHM(max_element)
__JE_ALGORITHM(min_element)
__JE_ALGORITHM(sort)
__JE_ALGORITHM(stable_sort)
__JE_ALGORITHM(sort_by_key)
__JE_ALGORITHM(stable_sort_by_key)
__JE_ALGORITHM(copy_if)
__JE_ALGORITHM(count_if)
__JE_ALGORITHM(count)
__JE_ALGORITHM(reduce_by_key)
__JE_ALGORITHM(inclusive_scan_by_key)
__JE_ALGORITHM(exclusive_scan_by_key)

}  // namespace thrust
#include "jax_enzyme_thrust_moving.h"
#undef __JE_ALGORITHM
#undef __JE_OVER
#undef __JE_MEMBER
