/* A Kalman filter with a two-dimensional state over a series: log-likelihood returned, estimates written out. */
#include <math.h>

double kalman(int n, double q, double r, const double *z, double *estimate) {
    double x = 0, v = 0, p[2][2] = {{1, 0}, {0, 1}}, loglik = 0;
    for (int t = 0; t < n; t++) {
        x += v;
        double a = p[0][0] + p[0][1] + p[1][0] + p[1][1] + 0.25 * q, b = p[0][1] + p[1][1] + 0.5 * q;
        double c = p[1][0] + p[1][1] + 0.5 * q, d = p[1][1] + q;
        double s = a + r, e = z[t] - x, k0 = a / s, k1 = c / s;
        loglik -= 0.5 * (log(6.283185307179586 * s) + e * e / s);
        x += k0 * e;
        v += k1 * e;
        p[0][0] = (1 - k0) * a;
        p[0][1] = (1 - k0) * b;
        p[1][0] = c - k1 * a;
        p[1][1] = d - k1 * b;
        estimate[t] = x;
    }
    return loglik;
}
