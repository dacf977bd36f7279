void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    for (int r = 0; r < 20; r++)
        for (int i = 0; i < n; i++) y[i] += 0.5 * x[i];
}
