// A list of unnamed arguments that is copied where nothing else copies memory.
#include <stdarg.h>

static double squares(int n, ...) {
    va_list all, again;
    va_start(all, n);
    va_copy(again, all);
    double s = va_arg(all, double);
    for (int i = 0; i < n; i++) {
        double a = va_arg(again, double);
        s += a * a;
    }
    va_end(again);
    va_end(all);
    return s;
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = squares(3, x[i], x[0], x[i] * x[n - 1]);
}
