void k(int n, int z, int h, const int *ptr, const int *idx, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double sum[8];
        for (int c = 0; c < h; c++) sum[c] = 0;
        for (int p = ptr[i]; p < ptr[i + 1]; p++)
            for (int c = 0; c < h; c++) sum[c] += x[idx[p] * h + c];
        for (int c = 0; c < h; c++) y[i * h + c] = sum[c] > 0 ? sum[c] : 0.1 * sum[c];
    }
}
