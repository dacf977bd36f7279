#include <stdlib.h>
double k(int n, const double *x) {
    double ***u = malloc(n * sizeof *u), ***v = malloc(n * sizeof *v);
    for (int i = 0; i < n; i++) {
        u[i] = malloc(n * sizeof **u);
        v[i] = malloc(n * sizeof **v);
        for (int j = 0; j < n; j++) {
            u[i][j] = malloc(n * 8);
            v[i][j] = malloc(n * 8);
            for (int k = 0; k < n; k++) v[i][j][k] = u[i][j][k] = x[(i * n + j) * n + k];
        }
    }
    for (int t = 0; t < 6; t++) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                for (int k = 1; k < n - 1; k++)
                    v[i][j][k] = (u[i - 1][j][k] + u[i + 1][j][k] + u[i][j - 1][k] + u[i][j + 1][k] + u[i][j][k - 1] +
                                  u[i][j][k + 1]) /
                                 6;
        double ***w = u;
        u = v;
        v = w;
    }
    double s = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            s += u[i][j][j];
            free(u[i][j]);
            free(v[i][j]);
        }
        free(u[i]);
        free(v[i]);
    }
    free(u);
    free(v);
    return s;
}
