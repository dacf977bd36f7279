/* Iterates z <- z^2 + c until it escapes, returns a smooth escape count; escape is decided per point. */
#include <math.h>

void complex_mandel(int n, const double *cr, const double *ci, double *mu) {
    for (int i = 0; i < n; i++) {
        double x = 0, y = 0, r2 = 0;
        int k = 0;
        while (k < 60 && r2 < 1e4) {
            double t = x * x - y * y + cr[i];
            y = 2 * x * y + ci[i];
            x = t;
            r2 = x * x + y * y;
            k++;
        }
        mu[i] = k - log2(0.5 * log(r2));
    }
}
