/* Rayleigh quotient after a fixed number of normalised power steps. */
#include <math.h>

double power_iteration(int n, int steps, const double *a, const double *start, double *v, double *w) {
    for (int i = 0; i < n; i++) v[i] = start[i];
    double rayleigh = 0;
    for (int s = 0; s < steps; s++) {
        double norm = 0, vw = 0;
        for (int i = 0; i < n; i++) {
            w[i] = 0;
            for (int j = 0; j < n; j++) w[i] += a[i * n + j] * v[j];
            norm += w[i] * w[i];
            vw += v[i] * w[i];
        }
        rayleigh = vw;
        for (int i = 0; i < n; i++) v[i] = w[i] / sqrt(norm);
    }
    return rayleigh;
}
