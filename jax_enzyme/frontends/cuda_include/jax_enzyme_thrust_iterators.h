// Thrust's iterators: what each leads to, by how far it is from where it began.
#pragma once
#include "jax_enzyme_thrust_tuple.h"
#include <iterator>
#include <utility>

namespace thrust {

// What follows for an iterator `I` from `I[n]`, moving by n, and the distance from another. R is what it leads to.
template <class I, class T, class R> struct __je_iterator {
  typedef std::random_access_iterator_tag iterator_category;
  typedef T value_type;
  typedef std::ptrdiff_t difference_type;
  typedef T *pointer;
  typedef R reference;
  __JE_MEMBER I &self() { return static_cast<I &>(*this); }
  __JE_MEMBER const I &self() const { return static_cast<const I &>(*this); }
  __JE_MEMBER R operator*() const { return self().at(0); }
  __JE_MEMBER R operator[](std::ptrdiff_t n) const { return self().at(n); }
  __JE_MEMBER I operator+(std::ptrdiff_t n) const {
    I moved = self();
    moved.advance(n);
    return moved;
  }
  __JE_MEMBER I operator-(std::ptrdiff_t n) const { return *this + -n; }
  __JE_MEMBER std::ptrdiff_t operator-(const I &o) const { return self().distance(o); }
  __JE_MEMBER I &operator+=(std::ptrdiff_t n) { return self().advance(n), self(); }
  __JE_MEMBER I &operator-=(std::ptrdiff_t n) { return self().advance(-n), self(); }
  __JE_MEMBER I &operator++() { return *this += 1; }
  __JE_MEMBER I &operator--() { return *this += -1; }
  __JE_MEMBER I operator++(int) {
    I before = self();
    ++*this;
    return before;
  }
  __JE_MEMBER bool operator==(const I &o) const { return self().distance(o) == 0; }
  __JE_MEMBER bool operator!=(const I &o) const { return self().distance(o) != 0; }
  __JE_MEMBER bool operator<(const I &o) const { return self().distance(o) < 0; }
};

template <class I> using __je_value = typename std::iterator_traits<I>::value_type;
template <class I> using __je_leads_to = decltype(std::declval<const I &>()[0]);

template <class T> struct counting_iterator : __je_iterator<counting_iterator<T>, T, T> {
  T value;
  __JE_MEMBER explicit counting_iterator(T v = T()) : value(v) {}
  __JE_MEMBER T at(std::ptrdiff_t n) const { return value + (T)n; }
  __JE_MEMBER void advance(std::ptrdiff_t n) { value = value + (T)n; }
  __JE_MEMBER std::ptrdiff_t distance(const counting_iterator &o) const {
    return (std::ptrdiff_t)value - (std::ptrdiff_t)o.value;
  }
};
template <class T> __JE_MEMBER counting_iterator<T> make_counting_iterator(T v) { return counting_iterator<T>(v); }

template <class T> struct constant_iterator : __je_iterator<constant_iterator<T>, T, T> {
  T value;
  std::ptrdiff_t place;
  __JE_MEMBER explicit constant_iterator(T v = T(), std::ptrdiff_t p = 0) : value(v), place(p) {}
  __JE_MEMBER T at(std::ptrdiff_t) const { return value; }
  __JE_MEMBER void advance(std::ptrdiff_t n) { place += n; }
  __JE_MEMBER std::ptrdiff_t distance(const constant_iterator &o) const { return place - o.place; }
};
template <class T> __JE_MEMBER constant_iterator<T> make_constant_iterator(T v) { return constant_iterator<T>(v); }

struct __je_nowhere {
  template <class T> __JE_MEMBER const __je_nowhere &operator=(const T &) const { return *this; }
};
template <class T = void> struct discard_iterator : __je_iterator<discard_iterator<T>, __je_nowhere, __je_nowhere> {
  std::ptrdiff_t place = 0;
  __JE_MEMBER __je_nowhere at(std::ptrdiff_t) const { return {}; }
  __JE_MEMBER void advance(std::ptrdiff_t n) { place += n; }
  __JE_MEMBER std::ptrdiff_t distance(const discard_iterator &o) const { return place - o.place; }
};
__JE_MEMBER discard_iterator<> make_discard_iterator() { return {}; }

template <class F, class I, class R = void, class V = void>
struct transform_iterator
    : __je_iterator<transform_iterator<F, I, R, V>,
                    typename std::decay<decltype(std::declval<F>()(std::declval<__je_leads_to<I>>()))>::type,
                    decltype(std::declval<F>()(std::declval<__je_leads_to<I>>()))> {
  I inner;
  F f;
  __JE_MEMBER transform_iterator(I i, F g) : inner(i), f(g) {}
  __JE_MEMBER explicit transform_iterator(I i) : inner(i), f() {}
  __JE_MEMBER auto at(std::ptrdiff_t n) const { return f(inner[n]); }
  __JE_MEMBER void advance(std::ptrdiff_t n) { inner = inner + n; }
  __JE_MEMBER std::ptrdiff_t distance(const transform_iterator &o) const { return inner - o.inner; }
  __JE_MEMBER I base() const { return inner; }
};
template <class F, class I> __JE_MEMBER transform_iterator<F, I> make_transform_iterator(I i, F f) {
  return transform_iterator<F, I>(i, f);
}

template <class E, class I>
struct permutation_iterator : __je_iterator<permutation_iterator<E, I>, __je_value<E>, __je_leads_to<E>> {
  E elements;
  I indices;
  __JE_MEMBER permutation_iterator(E e, I i) : elements(e), indices(i) {}
  __JE_MEMBER __je_leads_to<E> at(std::ptrdiff_t n) const { return elements[indices[n]]; }
  __JE_MEMBER void advance(std::ptrdiff_t n) { indices = indices + n; }
  __JE_MEMBER std::ptrdiff_t distance(const permutation_iterator &o) const { return indices - o.indices; }
};
template <class E, class I> __JE_MEMBER permutation_iterator<E, I> make_permutation_iterator(E e, I i) {
  return permutation_iterator<E, I>(e, i);
}

template <class I> struct reverse_iterator : __je_iterator<reverse_iterator<I>, __je_value<I>, __je_leads_to<I>> {
  I inner;
  __JE_MEMBER explicit reverse_iterator(I i) : inner(i) {}
  __JE_MEMBER __je_leads_to<I> at(std::ptrdiff_t n) const { return inner[-1 - n]; }
  __JE_MEMBER void advance(std::ptrdiff_t n) { inner = inner - n; }
  __JE_MEMBER std::ptrdiff_t distance(const reverse_iterator &o) const { return o.inner - inner; }
  __JE_MEMBER I base() const { return inner; }
};
template <class I> __JE_MEMBER reverse_iterator<I> make_reverse_iterator(I i) { return reverse_iterator<I>(i); }

template <class T> struct zip_iterator;
template <class... I>
struct zip_iterator<tuple<I...>>
    : __je_iterator<zip_iterator<tuple<I...>>, tuple<__je_value<I>...>, tuple<__je_leads_to<I>...>> {
  tuple<I...> inner;
  __JE_MEMBER zip_iterator() {}
  __JE_MEMBER explicit zip_iterator(tuple<I...> i) : inner(i) {}
  template <class... J> __JE_MEMBER zip_iterator(const zip_iterator<tuple<J...>> &o) : inner(o.inner) {}
  __JE_MEMBER const tuple<I...> &get_iterator_tuple() const { return inner; }
  __JE_MEMBER auto at(std::ptrdiff_t n) const { return each(n, std::index_sequence_for<I...>()); }
  __JE_MEMBER void advance(std::ptrdiff_t n) { moved(n, std::index_sequence_for<I...>()); }
  __JE_MEMBER std::ptrdiff_t distance(const zip_iterator &o) const { return inner.head - o.inner.head; }

 private:
  template <size_t... N>
  __JE_MEMBER tuple<__je_leads_to<I>...> each(std::ptrdiff_t n, std::index_sequence<N...>) const {
    return tuple<__je_leads_to<I>...>(thrust::get<N>(inner)[n]...);
  }
  template <size_t... N> __JE_MEMBER void moved(std::ptrdiff_t n, std::index_sequence<N...>) {
    ((thrust::get<N>(inner) = thrust::get<N>(inner) + n), ...);
  }
};
template <class... I> __JE_MEMBER zip_iterator<tuple<I...>> make_zip_iterator(tuple<I...> i) {
  return zip_iterator<tuple<I...>>(i);
}
template <class... I> __JE_MEMBER zip_iterator<tuple<I...>> make_zip_iterator(I... i) {
  return zip_iterator<tuple<I...>>(tuple<I...>(i...));
}

template <class I> __JE_MEMBER std::ptrdiff_t distance(I first, I last) { return last - first; }
template <class I> __JE_MEMBER void advance(I &i, std::ptrdiff_t n) { i = i + n; }

}  // namespace thrust
