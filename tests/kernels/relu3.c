/* The cube where positive, else zero, through pow. */
#include <math.h>

static double relu3_of(double x) { return x > 0 ? pow(x, 3) : 0; }

void relu3(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = relu3_of(x[i]);
}
