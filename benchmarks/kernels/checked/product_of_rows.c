#include "rows.h"

void k(int n, const double *x, const double *y, double *z) {
    double **a = mat(n, n), **b = mat(n, n), **c = mat(n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i][j] = x[i * n + j];
            b[i][j] = y[i * n + j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            c[i][j] = 0;
            for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) z[i * n + j] = c[i][j];
    done(a, n);
    done(b, n);
    done(c, n);
}
