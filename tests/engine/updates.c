#include <math.h>

/* Walsh and Hadamard: pairs at distances that double. */
void walsh(int n, double *x) {
    for (int half = 1; half < n; half *= 2)
        for (int i = 0; i < n; i += 2 * half)
            for (int k = i; k < i + half; k++) {
                double a = x[k], b = x[k + half];
                x[k] = a + b * b;
                x[k + half] = a * b - b;
            }
}

/* Two rows are turned against one another, as many times as there are angles. */
void rotated(int m, int n, const double *angle, double *a) {
    for (int r = 0; r + 1 < m; r++) {
        double c = cos(angle[r]), s = sin(angle[r]);
        for (int j = 0; j < n; j++) {
            double p = a[r * n + j], q = a[(r + 1) * n + j];
            a[(r + 1) * n + j] = c * q - s * p;
            a[r * n + j] = c * p + s * q;
        }
    }
}

/* Places and speeds of a chain. */
void chain(int n, int steps, double *q, double *v) {
    for (int t = 0; t < steps; t++)
        for (int i = 1; i + 1 < n; i++) {
            v[i] += 0.1 * sin(q[i - 1] - 2 * q[i] + q[i + 1]);
            q[i] += 0.1 * v[i] * v[i];
        }
}

/* Two places that may be one. */
void pairs(int n, const int *first, const int *second, double *x) {
    for (int i = 0; i < n; i++) {
        double a = x[first[i]], b = x[second[i]];
        x[first[i]] = a * b;
        x[second[i]] = sin(a) + b;
    }
}

/* From both ends: one place in the middle. */
void crossed(int n, double *x) {
    for (int i = 0; i < n; i++) {
        double a = x[i], b = x[n - 1 - i];
        x[i] = a * b;
        x[n - 1 - i] = b * b + a;
    }
}

/* The place is read again before it is written, and once more behind that. */
void again(int n, double *x) {
    for (int i = 0; i + 1 < n; i++) {
        double a = x[i];
        x[i + 1] = x[i + 1] * a;
        x[i] = a * x[i + 1] + sin(x[i]);
    }
}

/* Only some are updated, and the last number is what was there. */
double taken(int n, double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        double a = x[i];
        s += a * a;
        x[i] = i % 3 == 1 ? 2 : a * s;
    }
    return s;
}
