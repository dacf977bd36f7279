/* Soft dynamic time warping: a two-dimensional recurrence with a smooth minimum of three neighbours. */
#include <math.h>

static double soft_min(double a, double b, double c, double gamma) {
    double low = a < b ? a : b;
    low = low < c ? low : c;
    return low - gamma * log(exp((low - a) / gamma) + exp((low - b) / gamma) + exp((low - c) / gamma));
}

double soft_dtw(int m, int n, double gamma, const double *x, const double *y, double *r) {
    int w = n + 1;
    for (int j = 0; j <= n; j++) r[j] = 1e3;
    for (int i = 0; i <= m; i++) r[i * w] = 1e3;
    r[0] = 0;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++) {
            double d = x[i - 1] - y[j - 1];
            r[i * w + j] = d * d + soft_min(r[(i - 1) * w + j], r[i * w + j - 1], r[(i - 1) * w + j - 1], gamma);
        }
    return r[m * w + n];
}
