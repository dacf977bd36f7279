/* Sums with a large constant round, as in many libraries: an exponential, and the distance to the nearest integer. */
#include <math.h>

static double shifted_exp(double x) {
    const double shift = 0x1.8p52;
    double k = (x * 1.4426950408889634 + shift) - shift, r = x - k * 0.6931471805599453, term = 1, sum = 1;
    for (int i = 1; i < 14; i++) sum += term *= r / i;
    return ldexp(sum, (int)k);
}

void rounded(int n, const double *x, double *y) {
    static const double two52[2] = {0x1p52, -0x1p52};
    for (int i = 0; i < n; i++) {
        double shift = two52[signbit(x[i]) != 0];
        volatile double whole = shift + x[i];
        double rest = x[i] - (whole - shift);
        y[i] = shifted_exp(x[i]) * rest * rest;
    }
}
