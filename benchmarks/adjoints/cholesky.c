/* Cholesky factor: the columns from the last to the first, both updates of a row in one pass. */
#include <math.h>

int cholesky_adjoint(int n, const double *a, const double *factor_bar, double *restrict a_bar, double *restrict l) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            l[i * n + j] = a[i * n + j];
            a_bar[i * n + j] = j > i ? 0 : factor_bar[i * n + j];
        }
    for (int j = 0; j < n; j++) {
        const double *row = l + j * n;
        double pivot = row[j];
        for (int k = 0; k < j; k++) pivot -= row[k] * row[k];
        if (!(pivot > 0)) return 1 + j;
        l[j * n + j] = pivot = sqrt(pivot);
        for (int i = j + 1; i < n; i++) {
            double sum = l[i * n + j];
            for (int k = 0; k < j; k++) sum -= l[i * n + k] * row[k];
            l[i * n + j] = sum / pivot;
        }
    }
    for (int j = n - 1; j >= 0; j--) {
        const double *row = l + j * n;
        double *bar = a_bar + j * n, inverse = 1 / row[j], pivot_bar = bar[j];
        int i = j + 1;
        for (; i + 1 < n; i += 2) {
            const double *p = l + i * n, *q = p + n;
            double *p_bar = a_bar + i * n, *q_bar = p_bar + n;
            double s = p_bar[j] *= inverse, t = q_bar[j] *= inverse;
            pivot_bar -= s * p[j] + t * q[j];
#pragma clang loop vectorize(assume_safety)
            for (int k = 0; k < j; k++) {
                p_bar[k] -= s * row[k];
                q_bar[k] -= t * row[k];
                bar[k] -= s * p[k] + t * q[k];
            }
        }
        if (i < n) {
            const double *p = l + i * n;
            double *p_bar = a_bar + i * n, s = p_bar[j] *= inverse;
            pivot_bar -= s * p[j];
#pragma clang loop vectorize(assume_safety)
            for (int k = 0; k < j; k++) {
                p_bar[k] -= s * row[k];
                bar[k] -= s * p[k];
            }
        }
        pivot_bar *= 0.5 * inverse;
        bar[j] = pivot_bar;
        for (int k = 0; k < j; k++) bar[k] -= 2 * pivot_bar * row[k];
    }
    return 0;
}
