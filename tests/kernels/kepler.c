/* Kepler's equation E - e sin E = M by Newton with at most 50 steps and a break in the middle of the loop. */
#include <math.h>

void kepler(int n, double e, const double *mean, double *ecc, int *used) {
    for (int i = 0; i < n; i++) {
        double x = mean[i];
        int k = 0;
        for (; k < 50; k++) {
            double f = x - e * sin(x) - mean[i];
            if (fabs(f) < 1e-13) break;
            x -= f / (1 - e * cos(x));
        }
        ecc[i] = x;
        used[i] = k;
    }
}
