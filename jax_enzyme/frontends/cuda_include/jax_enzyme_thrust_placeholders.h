// Thrust's placeholders: `_1 / total` is a function of its first argument.
#pragma once
#include "jax_enzyme_thrust_tuple.h"
#include <type_traits>

namespace thrust {

struct __je_expression {};
template <int N> struct __je_placeholder : __je_expression {
  template <class... A> __JE_MEMBER auto &operator()(A &&...arguments) const { return pick<N>(arguments...); }

 private:
  template <int I, class H, class... A> static __JE_MEMBER auto &pick(H &first, A &...rest) {
    if constexpr (I == 0) return first;
    else return pick<I - 1>(rest...);
  }
};
template <class T> struct __je_known : __je_expression {
  T value;
  __JE_MEMBER __je_known(const T &value) : value(value) {}
  template <class... A> __JE_MEMBER const T &operator()(A &&...) const { return value; }
};
template <class F, class A, class B> struct __je_binary : __je_expression {
  A a;
  B b;
  __JE_MEMBER __je_binary(const A &a, const B &b) : a(a), b(b) {}
  template <class... G> __JE_MEMBER decltype(auto) operator()(G &&...arguments) const {
    return F::of(a(arguments...), b(arguments...));
  }
};
template <class F, class A> struct __je_unary : __je_expression {
  A a;
  __JE_MEMBER __je_unary(const A &a) : a(a) {}
  template <class... G> __JE_MEMBER auto operator()(G &&...arguments) const { return F::of(a(arguments...)); }
};
template <class T> constexpr bool __je_is_expression = std::is_base_of<__je_expression, T>::value;
template <class T> using __je_operand = std::conditional_t<__je_is_expression<T>, T, __je_known<T>>;
template <class A, class B> using __je_either = std::enable_if_t<__je_is_expression<A> || __je_is_expression<B>>;

#define __JE_BINARY(name, op)                                                                                        \
  struct __je_of_##name {                                                                                            \
    template <class A, class B> static __JE_MEMBER auto of(const A &a, const B &b) { return a op b; }                \
  };                                                                                                                 \
  template <class A, class B, class = __je_either<A, B>> __JE_BOTH auto operator op(const A &a, const B &b) {        \
    return __je_binary<__je_of_##name, __je_operand<A>, __je_operand<B>>(a, b);                                      \
  }
__JE_BINARY(sum, +)
__JE_BINARY(difference, -)
__JE_BINARY(product, *)
__JE_BINARY(quotient, /)
__JE_BINARY(remainder, %)
__JE_BINARY(equal, ==)
__JE_BINARY(unequal, !=)
__JE_BINARY(less, <)
__JE_BINARY(greater, >)
__JE_BINARY(at_most, <=)
__JE_BINARY(at_least, >=)
__JE_BINARY(both, &&)
__JE_BINARY(one, ||)
__JE_BINARY(bits_both, &)
__JE_BINARY(bits_one, |)
#undef __JE_BINARY
// What changes its first operand: an argument.
#define __JE_CHANGE(name, op)                                                                                        \
  struct __je_of_##name {                                                                                            \
    template <class A, class B> static __JE_MEMBER A &of(A &a, const B &b) { return a op b; }                        \
  };                                                                                                                 \
  template <int N, class B> __JE_BOTH auto operator op(const __je_placeholder<N> &a, const B &b) {                   \
    return __je_binary<__je_of_##name, __je_placeholder<N>, __je_operand<B>>(a, b);                                  \
  }
__JE_CHANGE(added, +=)
__JE_CHANGE(taken, -=)
__JE_CHANGE(scaled, *=)
__JE_CHANGE(divided, /=)
#undef __JE_CHANGE
#define __JE_UNARY(name, op)                                                                                         \
  struct __je_of_##name {                                                                                            \
    template <class A> static __JE_MEMBER auto of(const A &a) { return op a; }                                       \
  };                                                                                                                 \
  template <class A, class = std::enable_if_t<__je_is_expression<A>>> __JE_BOTH auto operator op(const A &a) {       \
    return __je_unary<__je_of_##name, A>(a);                                                                         \
  }
__JE_UNARY(negative, -)
__JE_UNARY(opposite, !)
#undef __JE_UNARY

namespace placeholders {
inline constexpr __je_placeholder<0> _1;
inline constexpr __je_placeholder<1> _2;
inline constexpr __je_placeholder<2> _3;
inline constexpr __je_placeholder<3> _4;
} // namespace placeholders

} // namespace thrust
