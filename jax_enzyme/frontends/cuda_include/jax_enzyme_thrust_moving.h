// Thrust's algorithms that move, look for, replace and merge elements. One thread, in order.
#pragma once

namespace thrust {

template <class M, class I, class O> __global__ void __je_gather(M map, std::ptrdiff_t n, I from, O to) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[map[i]];
}
template <class I, class M, class O> __global__ void __je_scatter(I from, std::ptrdiff_t n, M map, O to) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n) to[map[i]] = from[i];
}
template <class I, class S, class P, class T>
__global__ void __je_replace(I first, std::ptrdiff_t n, S asked, P holds, T value) {
  std::ptrdiff_t i = blockIdx.x * (std::ptrdiff_t)blockDim.x + threadIdx.x;
  if (i < n && holds(asked[i])) first[i] = value;
}
template <class I, class O, class F> __global__ void __je_differences(I first, std::ptrdiff_t n, O to, F f) {
  for (std::ptrdiff_t i = n - 1; i > 0; i--) to[i] = f(first[i], first[i - 1]);
  to[0] = first[0];
}
template <class I, class P> __global__ void __je_find(I first, std::ptrdiff_t n, P holds, std::ptrdiff_t *found) {
  std::ptrdiff_t i = 0;
  while (i < n && !holds(first[i])) i++;
  *found = i;
}
template <class I, class F> __global__ void __je_generate(I first, std::ptrdiff_t n, F f) {
  for (std::ptrdiff_t i = 0; i < n; i++) first[i] = f();
}
template <class I, class V, class F>
__global__ void __je_unique(I first, std::ptrdiff_t n, V values, F equal, std::ptrdiff_t *count) {
  std::ptrdiff_t kept = 0;
  for (std::ptrdiff_t i = 1; i < n; i++) {
    if (equal(first[kept], first[i])) continue;
    first[++kept] = first[i];
    values[kept] = values[i];
  }
  *count = n ? kept + 1 : 0;
}
template <class I, class J, class O, class F>
__global__ void __je_merge(I first, std::ptrdiff_t n, J second, std::ptrdiff_t m, O to, F before) {
  std::ptrdiff_t i = 0, j = 0;
  while (i < n || j < m) {
    bool left = j == m || (i < n && !before(second[j], first[i]));
    if (left) to[i + j] = first[i], i++;
    else to[i + j] = second[j], j++;
  }
}
template <class P> struct __je_not {
  P holds;
  template <class T> __JE_MEMBER bool operator()(const T &a) const { return !holds(a); }
};

template <class M, class I, class O> O gather(M first, M last, I from, O to) {
  if (last != first) __je_gather __JE_OVER(last - first)(first, last - first, from, to);
  return to + (last - first);
}
template <class I, class M, class O> void scatter(I first, I last, M map, O to) {
  if (last != first) __je_scatter __JE_OVER(last - first)(first, last - first, map, to);
}
template <class I, class S, class P, class T> void replace_if(I first, I last, S asked, P holds, const T &value) {
  if (last != first) __je_replace __JE_OVER(last - first)(first, last - first, asked, holds, value);
}
template <class I, class P, class T> void replace_if(I first, I last, P holds, const T &value) {
  replace_if(first, last, first, holds, value);
}
template <class I, class T> void replace(I first, I last, const T &old, const T &value) {
  replace_if(first, last, first, __je_equals<T>{old}, value);
}
template <class I, class O, class F> O adjacent_difference(I first, I last, O to, F f) {
  if (last != first) __je_differences<<<1, 1>>>(first, last - first, to, f);
  return to + (last - first);
}
template <class I, class O> O adjacent_difference(I first, I last, O to) {
  return adjacent_difference(first, last, to, minus<__je_value<I>>());
}
template <class I, class O> O copy_n(I first, std::ptrdiff_t n, O to) { return copy(first, first + n, to); }
template <class I, class T> I fill_n(I first, std::ptrdiff_t n, T value) {
  fill(first, first + n, value);
  return first + n;
}
template <class I, class F> void tabulate(I first, I last, F f) {
  transform(counting_iterator<std::ptrdiff_t>(0), counting_iterator<std::ptrdiff_t>(last - first), first, f);
}
template <class I, class F> void generate(I first, I last, F f) { __je_generate<<<1, 1>>>(first, last - first, f); }
template <class I, class J> J swap_ranges(I first, I last, J second) {
  for (; first != last; ++first, ++second) {
    __je_value<I> held = *first;
    *first = *second;
    *second = held;
  }
  return second;
}
template <class I> void reverse(I first, I last) {
  for (std::ptrdiff_t i = 0, j = last - first - 1; i < j; i++, j--) {
    __je_value<I> held = first[i];
    first[i] = first[j];
    first[j] = held;
  }
}
template <class I, class P> I find_if(I first, I last, P holds) {
  std::ptrdiff_t found = 0;
  __je_find<<<1, 1>>>(first, last - first, holds, &found);
  return first + found;
}
template <class I, class P> I find_if_not(I first, I last, P holds) { return find_if(first, last, __je_not<P>{holds}); }
template <class I, class T> I find(I first, I last, const T &value) {
  return find_if(first, last, __je_equals<T>{value});
}
template <class I, class P> bool any_of(I first, I last, P holds) { return find_if(first, last, holds) != last; }
template <class I, class P> bool none_of(I first, I last, P holds) { return find_if(first, last, holds) == last; }
template <class I, class P> bool all_of(I first, I last, P holds) { return find_if_not(first, last, holds) == last; }
template <class I, class J> bool equal(I first, I last, J second) {
  for (; first != last; ++first, ++second)
    if (!(*first == *second)) return false;
  return true;
}
template <class I> bool is_sorted(I first, I last) {
  for (std::ptrdiff_t i = 1; i < last - first; i++)
    if (first[i] < first[i - 1]) return false;
  return true;
}
template <class I> pair<I, I> minmax_element(I first, I last) {
  return pair<I, I>(min_element(first, last), max_element(first, last));
}

// Stable all of them.
template <class I, class S, class P> I remove_if(I first, I last, S asked, P holds) {
  return copy_if(first, last, asked, first, __je_not<P>{holds});
}
template <class I, class P> I remove_if(I first, I last, P holds) { return remove_if(first, last, first, holds); }
template <class I, class T> I remove(I first, I last, const T &value) {
  return remove_if(first, last, first, __je_equals<T>{value});
}
template <class I, class O, class P> O remove_copy_if(I first, I last, O to, P holds) {
  return copy_if(first, last, first, to, __je_not<P>{holds});
}
template <class I, class P> I stable_partition(I first, I last, P holds) {
  std::vector<__je_value<I>> others(last - first);
  auto kept = copy_if(first, last, others.data(), __je_not<P>{holds});
  I middle = copy_if(first, last, first, holds);
  copy(others.data(), kept, middle);
  return middle;
}
template <class I, class P> I partition(I first, I last, P holds) { return stable_partition(first, last, holds); }
template <class I, class F> I unique(I first, I last, F equal) {
  std::ptrdiff_t count = 0;
  __je_unique<<<1, 1>>>(first, last - first, discard_iterator<>(), equal, &count);
  return first + count;
}
template <class I> I unique(I first, I last) { return thrust::unique(first, last, equal_to<__je_value<I>>()); }
template <class K, class V> pair<K, V> unique_by_key(K first, K last, V values) {
  std::ptrdiff_t count = 0;
  __je_unique<<<1, 1>>>(first, last - first, values, equal_to<__je_value<K>>(), &count);
  return pair<K, V>(first + count, values + count);
}
template <class I, class J, class O, class F> O merge(I first, I last, J second, J end, O to, F before) {
  __je_merge<<<1, 1>>>(first, last - first, second, end - second, to, before);
  return to + (last - first) + (end - second);
}
template <class I, class J, class O> O merge(I first, I last, J second, J end, O to) {
  return merge(first, last, second, end, to, less<__je_value<I>>());
}

// The first place where a value may stand, and the last.
template <class I, class T, class F> I lower_bound(I first, I last, const T &value, F before) {
  std::ptrdiff_t low = 0, high = last - first;
  while (low < high) {
    std::ptrdiff_t middle = low + (high - low) / 2;
    if (before(first[middle], value)) low = middle + 1;
    else high = middle;
  }
  return first + low;
}
template <class I, class T> I lower_bound(I first, I last, const T &value) {
  return thrust::lower_bound(first, last, value, less<T>());
}
template <class I, class T> I upper_bound(I first, I last, const T &value) {
  std::ptrdiff_t low = 0, high = last - first;
  while (low < high) {
    std::ptrdiff_t middle = low + (high - low) / 2;
    if (value < first[middle]) high = middle;
    else low = middle + 1;
  }
  return first + low;
}
template <class I, class T> bool binary_search(I first, I last, const T &value) {
  I found = thrust::lower_bound(first, last, value);
  return found != last && !(value < *found);
}
template <class I, class J, class O> O lower_bound(I first, I last, J value, J end, O to) {
  for (; value != end; ++value, ++to) *to = thrust::lower_bound(first, last, *value) - first;
  return to;
}
template <class I, class J, class O> O upper_bound(I first, I last, J value, J end, O to) {
  for (; value != end; ++value, ++to) *to = thrust::upper_bound(first, last, *value) - first;
  return to;
}

__JE_ALGORITHM(gather)
__JE_ALGORITHM(scatter)
__JE_ALGORITHM(replace_if)
__JE_ALGORITHM(replace)
__JE_ALGORITHM(adjacent_difference)
__JE_ALGORITHM(copy_n)
__JE_ALGORITHM(fill_n)
__JE_ALGORITHM(tabulate)
__JE_ALGORITHM(generate)
__JE_ALGORITHM(swap_ranges)
__JE_ALGORITHM(reverse)
__JE_ALGORITHM(find_if)
__JE_ALGORITHM(find_if_not)
__JE_ALGORITHM(find)
__JE_ALGORITHM(any_of)
__JE_ALGORITHM(none_of)
__JE_ALGORITHM(all_of)
__JE_ALGORITHM(equal)
__JE_ALGORITHM(is_sorted)
__JE_ALGORITHM(minmax_element)
__JE_ALGORITHM(remove_if)
__JE_ALGORITHM(remove)
__JE_ALGORITHM(remove_copy_if)
__JE_ALGORITHM(stable_partition)
__JE_ALGORITHM(partition)
__JE_ALGORITHM(unique)
__JE_ALGORITHM(unique_by_key)
__JE_ALGORITHM(merge)
__JE_ALGORITHM(lower_bound)
__JE_ALGORITHM(upper_bound)
__JE_ALGORITHM(binary_search)

}  // namespace thrust
