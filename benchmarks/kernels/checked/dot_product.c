double k(int n, const double *x, const double *y) {
    double s = 0;
    for (int r = 0; r < 20; r++)
        for (int i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
