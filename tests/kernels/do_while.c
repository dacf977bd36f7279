/* A loop tested at its end, the arithmetic-geometric mean, inside a loop over pairs that counts down. */
#include <math.h>

void do_while(int n, const double *a, const double *b, double *mean) {
    int i = n;
    while (i-- > 0) {
        double x = a[i], y = b[i];
        do {
            double t = 0.5 * (x + y);
            y = sqrt(x * y);
            x = t;
        } while (fabs(x - y) > 1e-14 * x);
        mean[i] = x;
    }
}
