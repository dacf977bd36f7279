/* y = A^T (A x): the two access orders of one matrix, an intermediate vector in scratch. */
void gemv(int m, int n, const double *a, const double *x, double *t, double *y) {
    for (int i = 0; i < m; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) sum += a[i * n + j] * x[j];
        t[i] = sum;
    }
    for (int j = 0; j < n; j++) y[j] = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) y[j] += a[i * n + j] * t[i];
}
