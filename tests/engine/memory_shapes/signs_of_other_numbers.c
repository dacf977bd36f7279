// Signs that are taken from one number's bits for another, as libraries of elementary functions do.
#include <stdint.h>
#include <string.h>

static int64_t bits(double d) {
    int64_t i;
    memcpy(&i, &d, 8);
    return i;
}
static double number(int64_t i) {
    double d;
    memcpy(&d, &i, 8);
    return d;
}
static double mulsign(double x, double y) { return number(bits(x) ^ (bits(y) & INT64_MIN)); }
static double orsign(double x, double y) { return number(bits(x) | (bits(y) & INT64_MIN)); }
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double c = x[i] - 1, d = x[(i + 1) % n] - 0.9;
        y[i] = mulsign(x[(i + 1) % n], c) * x[i] + orsign(c, d) * x[i] + mulsign(1, d) * c;
        y[i] += mulsign(x[i] * x[i], mulsign(c, d));
    }
}
