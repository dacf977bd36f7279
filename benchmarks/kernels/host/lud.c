void lud(int n, double *m) {
    for (int k = 0; k < n; k++) {
#pragma omp parallel for if (n - k > 64)
        for (int i = k + 1; i < n; i++) {
            m[i * n + k] /= m[k * n + k];
            double f = m[i * n + k];
            for (int j = k + 1; j < n; j++) m[i * n + j] -= f * m[k * n + j];
        }
    }
}
