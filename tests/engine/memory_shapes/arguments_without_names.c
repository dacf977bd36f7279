// A variadic function whose unnamed arguments are constants.
#include <stdarg.h>

static double polynomial(double x, int n, ...) {
    va_list rest;
    va_start(rest, n);
    double s = 0, power = 1;
    for (int i = 0; i < n; i++) {
        s += va_arg(rest, double) * power;
        power *= x;
    }
    va_end(rest);
    return s;
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = polynomial(x[i], 3, 1.0, 2.0, -0.5) + polynomial(x[0], 2, 0.5, 3.0);
}
