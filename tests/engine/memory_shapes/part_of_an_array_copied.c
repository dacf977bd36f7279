/* One number of the array is read where it lies, and others only in a copy. */
#include <string.h>

void k(int n, const double *x, double *y) {
    double v[4];
    memcpy(v, x + 2, sizeof v);
    int at = (int)(x[1] * 2) & 3;
    for (int i = 0; i < n; i++) y[i] = v[at] * v[(at + i) & 3];
}
