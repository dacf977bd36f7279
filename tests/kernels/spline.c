/* Natural cubic spline: second derivatives by elimination of a tridiagonal system, then evaluation piece by piece. */
void spline(int n, int m, const double *x, const double *y, const double *at, double *u, double *y2, double *out) {
    y2[0] = u[0] = y2[n - 1] = 0;
    for (int i = 1; i < n - 1; i++) {
        double sig = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1]), p = sig * y2[i - 1] + 2;
        double jump = (y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
        y2[i] = (sig - 1) / p;
        u[i] = (6 * jump / (x[i + 1] - x[i - 1]) - sig * u[i - 1]) / p;
    }
    for (int k = n - 2; k >= 0; k--) y2[k] = y2[k] * y2[k + 1] + u[k];
    for (int e = 0; e < m; e++) {
        int i = 0;
        while (i < n - 2 && at[e] > x[i + 1]) i++;
        double h = x[i + 1] - x[i], a = (x[i + 1] - at[e]) / h, b = (at[e] - x[i]) / h;
        out[e] = a * y[i] + b * y[i + 1] + ((a * a * a - a) * y2[i] + (b * b * b - b) * y2[i + 1]) * h * h / 6;
    }
}
