#include "rows.h"

double k(int n, const double *x) {
    double **a = mat(n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) a[i][j] = x[i * n + j] + (i == j ? n : 0);
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < n; j++) a[i][j] -= a[i][k] * a[k][j];
        }
    double d = 0;
    for (int i = 0; i < n; i++) d += a[i][i];
    done(a, n);
    return d;
}
