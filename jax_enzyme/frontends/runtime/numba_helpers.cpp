// Numba's calls of its helpers in C, under the names by which its code calls them.
// provides: numba_attempt_nocopy_reshape numba_fatal_error numba_(gamma|frexp|ldexp|nextafter|cpow)f?
#include "numba_object.h"

extern "C" {

double numba_gamma(double x) { return __builtin_tgamma(x); }
float numba_gammaf(float x) { return __builtin_tgammaf(x); }
double numba_frexp(double x, int *exponent) { return __builtin_frexp(x, exponent); }
float numba_frexpf(float x, int *exponent) { return __builtin_frexpf(x, exponent); }
double numba_ldexp(double x, int exponent) { return __builtin_ldexp(x, exponent); }
float numba_ldexpf(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
double numba_nextafter(double x, double y) { return __builtin_nextafter(x, y); }
float numba_nextafterf(float x, float y) { return __builtin_nextafterf(x, y); }
void numba_cpow(_Complex double *x, _Complex double *y, _Complex double *z) { *z = __builtin_cpow(*x, *y); }
void numba_cpowf(_Complex float *x, _Complex float *y, _Complex float *z) { *z = __builtin_cpowf(*x, *y); }

int numba_fatal_error(void) { __builtin_abort(); }

// The strides of a contiguous array in another shape; 0 (a copy is needed) for any other array.
int numba_attempt_nocopy_reshape(i64 rank, const i64 *extents, const i64 *strides, i64 new_rank, const i64 *new_extents,
                                 i64 *new_strides, i64 bytes, int column_major) {
  i64 stride = bytes;
  for (i64 k = 0; k < rank; ++k) {
    const i64 axis = column_major ? k : rank - 1 - k;
    if (extents[axis] != 1 && strides[axis] != stride) return 0;
    stride *= extents[axis];
  }
  stride = bytes;
  for (i64 k = 0; k < new_rank; ++k) {
    const i64 axis = column_major ? k : new_rank - 1 - k;
    new_strides[axis] = stride;
    stride *= new_extents[axis];
  }
  return 1;
}

}  // extern "C"
