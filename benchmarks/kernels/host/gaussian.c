#include <stdlib.h>
#include <string.h>
void gaussian(int n, const double *a0, const double *b0, double *x) {
    double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n);
    memcpy(a, a0, sizeof(double) * n * n);
    memcpy(b, b0, sizeof(double) * n);
    for (int t = 0; t < n - 1; t++) {
#pragma omp parallel for if (n - t > 64)
        for (int i = t + 1; i < n; i++) {
            double f = a[n * i + t] / a[n * t + t];
            for (int j = t; j < n; j++) a[n * i + j] -= f * a[n * t + j];
            b[i] -= f * b[t];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        x[i] = b[i];
        for (int j = i + 1; j < n; j++) x[i] -= a[n * i + j] * x[j];
        x[i] /= a[n * i + i];
    }
    free(a);
    free(b);
}
