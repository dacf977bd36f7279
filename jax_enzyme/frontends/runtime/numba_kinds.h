// Which numbers Numba's calls of BLAS and LAPACK are about: a letter, mostly a constant.
#pragma once
#include "numba_object.h"

typedef _Complex float ComplexFloat;
typedef _Complex double ComplexDouble;

// Calls `use` with a zero of the kind of number; its result.
template <class Use> inline int of_kind(char kind, Use use) {
  switch (kind) {
    case 's': return use(float());
    case 'c': return use(ComplexFloat());
    case 'z': return use(ComplexDouble());
    default: return use(double());
  }
}

#define EACH_KIND(MACRO) MACRO(float, s) MACRO(double, d) MACRO(ComplexFloat, c) MACRO(ComplexDouble, z)
