// Addition to an atomic number.
#include <stdatomic.h>

void k(int n, const double *x, double *y) {
    _Atomic double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = x[i] * s;
}
