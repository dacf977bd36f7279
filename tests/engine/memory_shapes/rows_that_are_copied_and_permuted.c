// Rows that are copied and permuted.
#include <stdlib.h>
#include <string.h>

void k(int n, const double *x, double *y) {
    double **m = malloc(n * sizeof *m), **c = malloc(n * sizeof *c);
    for (int i = 0; i < n; i++) {
        m[i] = calloc(n, sizeof **m);
        for (int j = 0; j < n; j++) m[i][j] = x[i] * x[j];
    }
    memcpy(c, m, n * sizeof *m);
    for (int i = 0; i < n / 2; i++) {
        double *t = c[i];
        c[i] = c[n - 1 - i];
        c[n - 1 - i] = t;
    }
    for (int i = 0; i < n; i++) {
        y[i] = c[i][1] * m[i][2];
    }
    for (int i = 0; i < n; i++) free(m[i]);
    free(m);
    free(c);
}
