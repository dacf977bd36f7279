// Thrust's pairs and tuples, of the host and of the device. Tuples of references are what `zip_iterator` leads to.
#pragma once
#include "jax_enzyme_cuda.h"
#include <cstddef>
#include <tuple>

#define __JE_MEMBER __attribute__((host, device, always_inline)) inline

namespace thrust {

template <class A, class B> struct pair {
  typedef A first_type;
  typedef B second_type;
  A first;
  B second;
  __JE_MEMBER pair() : first(), second() {}
  __JE_MEMBER pair(const A &a, const B &b) : first(a), second(b) {}
  template <class C, class D> __JE_MEMBER pair(const pair<C, D> &o) : first(o.first), second(o.second) {}
  __JE_MEMBER bool operator==(const pair &o) const { return first == o.first && second == o.second; }
  __JE_MEMBER bool operator!=(const pair &o) const { return !(*this == o); }
  __JE_MEMBER bool operator<(const pair &o) const {
    return first < o.first || (!(o.first < first) && second < o.second);
  }
};
template <class A, class B> __JE_MEMBER pair<A, B> make_pair(A a, B b) { return pair<A, B>(a, b); }

struct null_type {};
template <class... T> struct tuple;
template <> struct tuple<> {
  __JE_MEMBER bool operator==(const tuple &) const { return true; }
  __JE_MEMBER bool operator<(const tuple &) const { return false; }
};
template <class H, class... T> struct tuple<H, T...> {
  H head;
  tuple<T...> tail;
  __JE_MEMBER tuple() : head(), tail() {}
  __JE_MEMBER tuple(const tuple &o) : head(o.head), tail(o.tail) {}
  template <class... A, class = typename std::enable_if<sizeof...(A) == sizeof...(T) && (sizeof...(T) > 0)>::type>
  __JE_MEMBER tuple(H h, A &&...rest) : head(h), tail(rest...) {}
  template <class A, class = typename std::enable_if<sizeof...(T) == 0 && std::is_convertible<A, H>::value>::type>
  __JE_MEMBER explicit tuple(A &&h) : head(h) {}
  template <class G, class... U, class = typename std::enable_if<sizeof...(U) == sizeof...(T)>::type>
  __JE_MEMBER tuple(const tuple<G, U...> &o) : head(o.head), tail(o.tail) {}
  template <class A, class B> __JE_MEMBER tuple(const pair<A, B> &o) : head(o.first), tail(o.second) {}
  __JE_MEMBER tuple &operator=(const tuple &o) {
    head = o.head;
    tail = o.tail;
    return *this;
  }
  template <class G, class... U> __JE_MEMBER tuple &operator=(const tuple<G, U...> &o) {
    head = o.head;
    tail = o.tail;
    return *this;
  }
  template <class A, class B> __JE_MEMBER tuple &operator=(const pair<A, B> &o) {
    head = o.first;
    tail.head = o.second;
    return *this;
  }
  template <class G, class... U> __JE_MEMBER bool operator==(const tuple<G, U...> &o) const {
    return head == o.head && tail == o.tail;
  }
  template <class G, class... U> __JE_MEMBER bool operator!=(const tuple<G, U...> &o) const { return !(*this == o); }
  template <class G, class... U> __JE_MEMBER bool operator<(const tuple<G, U...> &o) const {
    return head < o.head || (!(o.head < head) && tail < o.tail);
  }
};
template <size_t N, class T> struct tuple_element;
template <class H, class... T> struct tuple_element<0, tuple<H, T...>> {
  typedef H type;
};
template <size_t N, class H, class... T>
struct tuple_element<N, tuple<H, T...>> : tuple_element<N - 1, tuple<T...>> {};
template <class T> struct tuple_size;
template <class... T> struct tuple_size<tuple<T...>> {
  static constexpr size_t value = sizeof...(T);
};
template <size_t N, class... T> __JE_MEMBER typename tuple_element<N, tuple<T...>>::type &get(tuple<T...> &t) {
  if constexpr (N == 0) return t.head;
  else return get<N - 1>(t.tail);
}
template <size_t N, class... T>
__JE_MEMBER const typename tuple_element<N, tuple<T...>>::type &get(const tuple<T...> &t) {
  if constexpr (N == 0) return t.head;
  else return get<N - 1>(t.tail);
}
template <size_t N, class... T> __JE_MEMBER typename tuple_element<N, tuple<T...>>::type get(tuple<T...> &&t) {
  if constexpr (N == 0) return t.head;
  else return get<N - 1>(static_cast<decltype(t.tail) &&>(t.tail));
}
template <class... T> __JE_MEMBER tuple<T...> make_tuple(T... values) { return tuple<T...>(values...); }
template <class... T> __JE_MEMBER tuple<T &...> tie(T &...values) { return tuple<T &...>(values...); }

}  // namespace thrust

template <class... T> struct std::tuple_size<thrust::tuple<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t N, class... T>
struct std::tuple_element<N, thrust::tuple<T...>> : thrust::tuple_element<N, thrust::tuple<T...>> {};
