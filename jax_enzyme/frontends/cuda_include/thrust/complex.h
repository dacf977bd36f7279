// Complex numbers of Thrust.
#pragma once
#include "../jax_enzyme_cuda_complex.h"

namespace thrust {
using std::complex;
using std::abs;
using std::arg;
using std::conj;
using std::norm;
using std::polar;
using std::proj;
using std::exp;
using std::log;
using std::log10;
using std::pow;
using std::sqrt;
using std::sin;
using std::cos;
using std::tan;
using std::sinh;
using std::cosh;
using std::tanh;
using std::asin;
using std::acos;
using std::atan;
using std::asinh;
using std::acosh;
using std::atanh;
} // namespace thrust
