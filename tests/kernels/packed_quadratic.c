/* x^T L L^T x with L in packed lower triangular storage and the logarithm of its diagonal. */
#include <math.h>

double packed_quadratic(int n, const double *l, const double *x, double *t) {
    double sum = 0;
    for (int j = 0; j < n; j++) t[j] = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double v = l[i * (i + 1) / 2 + j];
            t[j] += (i == j ? exp(v) : v) * x[i];
        }
    for (int j = 0; j < n; j++) sum += t[j] * t[j];
    return sum;
}
