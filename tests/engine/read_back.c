#include <math.h>

/* Rows that sum to one: what is left of the output is all that is needed. */
void shares(int m, int n, const double *x, double *y) {
    for (int i = 0; i < m; i++) {
        double s = 0;
        for (int j = 0; j < n; j++) s += x[i * n + j] * x[i * n + j];
        for (int j = 0; j < n; j++) y[i * n + j] = tanh(x[i * n + j] / s);
    }
}

/* States of a network, one row for each step. */
void states(int m, int n, const double *x, double *y) {
    for (int i = 1; i < m; i++)
        for (int j = 0; j < n; j++) {
            double z = x[i * n + j];
            for (int k = 0; k < n; k++) z += x[k % m * n + j] * y[(i - 1) * n + k];
            y[i * n + j] = tanh(z);
        }
}

/* Only where there is a row above: the place is outside of the output in the iteration that stores nothing. */
void some(int m, int n, const double *x, double *y) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            if (i > 0 && x[i * n + j] > 0.5) {
                double e = exp(x[i * n + j]);
                y[(i - 1) * n + j] = e;
                y[i * n + j] = e * e + sin(e);
            }
}

/* The output is overwritten by its square. */
void squared(int m, int n, const double *x, double *y) {
    for (int i = 0; i < m * n; i++) y[i] = exp(x[i]);
    for (int i = 0; i < m * n; i++) y[i] *= y[i];
}

/* One place for each row, the last number stays. */
void last(int m, int n, const double *x, double *y) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double e = exp(x[i * n + j]);
            y[i * n] = e;
            y[i * n + n - 1] += e * e;
        }
}

/* The place depends on the number that is stored there. */
void sorted(int m, int n, const double *x, double *y) {
    for (int i = 0; i < m * n; i++) {
        double e = exp(x[i]);
        y[(int)(e * m * n / 3)] = e;
    }
}
