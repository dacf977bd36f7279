// Signs that are taken from one number's bits for another, or from an integer, as libraries of elementary functions do;
// and signs of some lanes of a vector.
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
static double turned(double x, unsigned quarters) {
    return number(bits(x) ^ (int64_t)((uint64_t)(quarters >> 1) << 63));
}
typedef double pair __attribute__((vector_size(16)));
typedef int64_t words __attribute__((vector_size(16)));
static pair conjugate(pair z) { return (pair)((words)z ^ (words){0, INT64_MIN}); }
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double c = x[i] - 1, d = x[(i + 1) % n] - 0.9;
        y[i] = mulsign(x[(i + 1) % n], c) * x[i] + orsign(c, d) * x[i] + mulsign(1, d) * c;
        y[i] += mulsign(x[i] * x[i], mulsign(c, d));
        pair z = conjugate((pair){x[i], c});
        y[i] += turned(x[i] * d, i) + z[0] * z[1] + z[1];
    }
}
