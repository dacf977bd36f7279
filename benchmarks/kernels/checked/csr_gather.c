void k(int n, int z, const int *ptr, const int *idx, const double *v, const double *x, double *y) {
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < n; i++) {
            double s = 0;
            for (int j = ptr[i]; j < ptr[i + 1]; j++) s += v[j] * x[idx[j]];
            y[i] = s;
        }
}
