// What CUB reads in the place of an array: numbers in order, one number, what a function makes of others.
#pragma once
#include <iterator>

namespace cub {

// All that a place of type `I` is but what it reads: `Self::read(place)`.
template <class Self, class T, class I> struct __je_place {
  typedef T value_type;
  typedef T reference;
  typedef T *pointer;
  typedef long difference_type;
  typedef std::random_access_iterator_tag iterator_category;
  I place;
  __JE_BOTH_MEMBER Self at(I place) const {
    Self other = static_cast<const Self &>(*this);
    other.place = place;
    return other;
  }
  __JE_BOTH_MEMBER T operator*() const { return static_cast<const Self &>(*this).read(place); }
  template <class N> __JE_BOTH_MEMBER T operator[](N i) const { return static_cast<const Self &>(*this).read(place + i); }
  template <class N> __JE_BOTH_MEMBER Self operator+(N by) const { return at(place + by); }
  template <class N> __JE_BOTH_MEMBER Self operator-(N by) const { return at(place - by); }
  __JE_BOTH_MEMBER long operator-(const Self &other) const { return place - other.place; }
  template <class N> __JE_BOTH_MEMBER Self &operator+=(N by) {
    place += by;
    return static_cast<Self &>(*this);
  }
  __JE_BOTH_MEMBER Self &operator++() {
    ++place;
    return static_cast<Self &>(*this);
  }
  __JE_BOTH_MEMBER Self operator++(int) {
    Self before = static_cast<Self &>(*this);
    ++place;
    return before;
  }
  __JE_BOTH_MEMBER bool operator==(const Self &other) const { return place == other.place; }
  __JE_BOTH_MEMBER bool operator!=(const Self &other) const { return place != other.place; }
};

template <class T, class O = long> struct CountingInputIterator : __je_place<CountingInputIterator<T, O>, T, T> {
  __JE_BOTH_MEMBER CountingInputIterator(T first) { this->place = first; }
  __JE_BOTH_MEMBER T read(T place) const { return place; }
};
template <class T, class O = long> struct ConstantInputIterator : __je_place<ConstantInputIterator<T, O>, T, O> {
  T value;
  __JE_BOTH_MEMBER ConstantInputIterator(T value, O first = 0) : value(value) { this->place = first; }
  __JE_BOTH_MEMBER T read(O) const { return value; }
};
template <class T, class F, class I, class O = long>
struct TransformInputIterator : __je_place<TransformInputIterator<T, F, I, O>, T, I> {
  F function;
  __JE_BOTH_MEMBER TransformInputIterator(I from, F function) : function(function) { this->place = from; }
  __JE_BOTH_MEMBER T read(I place) const { return function(*place); }
};
template <CacheLoadModifier M, class T, class O = long>
struct CacheModifiedInputIterator : __je_place<CacheModifiedInputIterator<M, T, O>, T, const T *> {
  __JE_BOTH_MEMBER CacheModifiedInputIterator(const T *from) { this->place = from; }
  __JE_BOTH_MEMBER T read(const T *place) const { return *place; }
};
// Pairs of a place, counted from the start, and what is there.
template <class I, class O = long, class V = std::decay_t<decltype(*std::declval<I>())>>
struct ArgIndexInputIterator : __je_place<ArgIndexInputIterator<I, O, V>, KeyValuePair<O, V>, I> {
  I start;
  __JE_BOTH_MEMBER ArgIndexInputIterator(I from, O first = 0) : start(from) { this->place = from + first; }
  __JE_BOTH_MEMBER KeyValuePair<O, V> read(I place) const { return KeyValuePair<O, V>(place - start, *place); }
};

} // namespace cub
