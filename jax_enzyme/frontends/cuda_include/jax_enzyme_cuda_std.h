// `cuda::std` is C++'s library. What of it is `constexpr` threads of a device may call, and complex numbers.
#pragma once
#include <cmath>

namespace cuda {
namespace std {
using namespace ::std;
} // namespace std
} // namespace cuda
