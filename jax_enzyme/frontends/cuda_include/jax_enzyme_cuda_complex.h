// Complex numbers of Thrust and of `cuda::std` are C++'s, with operations of complex and real numbers of different types.
#pragma once
#include <complex>
#include <type_traits>
#include "jax_enzyme_cuda_std.h"

template <class T, class U>
using __je_of_two = std::enable_if_t<std::is_arithmetic<T>::value && std::is_arithmetic<U>::value &&
                                      !std::is_same<T, U>::value,
                                    std::complex<std::common_type_t<T, U>>>;

namespace std {
#define __JE_MIXED(op)                                                                              \
  template <class T, class U>                                                                       \
  __JE_BOTH __je_of_two<T, U> operator op(const complex<T> &a, const complex<U> &b) {       \
    return __je_of_two<T, U>(a) op __je_of_two<T, U>(b);                                              \
  }                                                                                                 \
  template <class T, class U>                                                                       \
  __JE_BOTH __je_of_two<T, U> operator op(const complex<T> &a, const U &b) {                \
    return __je_of_two<T, U>(a) op std::common_type_t<T, U>(b);                                      \
  }                                                                                                 \
  template <class T, class U>                                                                       \
  __JE_BOTH __je_of_two<T, U> operator op(const T &a, const complex<U> &b) {                \
    return std::common_type_t<T, U>(a) op __je_of_two<T, U>(b);                                      \
  }
__JE_MIXED(+)
__JE_MIXED(-)
__JE_MIXED(*)
__JE_MIXED(/)
#undef __JE_MIXED
} // namespace std
