/* Solves A x = b by elimination with partial pivoting: rows swapped in memory, pivots reported as integers. */
#include <math.h>

void lu_pivot(int n, const double *a, const double *b, double *w, int *pivot, double *x) {
    for (int i = 0; i < n * n; i++) w[i] = a[i];
    for (int i = 0; i < n; i++) x[i] = b[i];
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(w[i * n + k]) > fabs(w[best * n + k])) best = i;
        pivot[k] = best;
        if (best != k) {
            for (int j = 0; j < n; j++) {
                double t = w[k * n + j];
                w[k * n + j] = w[best * n + j];
                w[best * n + j] = t;
            }
            double t = x[k];
            x[k] = x[best];
            x[best] = t;
        }
        for (int i = k + 1; i < n; i++) {
            double factor = w[i * n + k] / w[k * n + k];
            for (int j = k; j < n; j++) w[i * n + j] -= factor * w[k * n + j];
            x[i] -= factor * x[k];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) x[i] -= w[i * n + j] * x[j];
        x[i] /= w[i * n + i];
    }
}
