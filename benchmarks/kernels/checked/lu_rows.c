#include <stdlib.h>
static double **mat(int n, int m) {
    double **a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = malloc(m * sizeof **a);
    return a;
}
static void done(double **a, int n) {
    for (int i = 0; i < n; i++) free(a[i]);
    free(a);
}

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
