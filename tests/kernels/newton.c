/* Solves y exp(y) = x by Newton's iteration until the step is small: the trip count depends on the data. */
#include <math.h>

void newton(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double v = log(1 + x[i]), step = 1;
        while (fabs(step) > 1e-12) {
            double e = exp(v);
            step = (v * e - x[i]) / (e * (1 + v));
            v -= step;
        }
        y[i] = v;
    }
}
