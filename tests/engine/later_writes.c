#include <math.h>

/* A recurrence: each number is written once, before it is read. */
void scan(int n, const double *x, double *y) {
    for (int i = 0; i < 3; i++) y[i] = x[i];
    for (int i = 3; i < n; i++) y[i] = y[i - 3] * x[i] + y[i - 3] * y[i - 3];
}

/* From the end. */
void back(int n, const double *x, double *y) {
    for (int i = n - 3; i < n; i++) y[i] = x[i];
    for (int i = n - 4; i >= 0; i--) y[i] = y[i + 3] * y[i + 3] * x[i];
}

/* A table of which later rows are made of earlier ones. */
void table(int n, int m, double *t) {
    for (int i = 1; i < n; i++)
        for (int j = 0; j < m; j++) t[i * m + j] = t[(i - 1) * m + j] * t[(i - 1) * m + m - 1 - j];
}

/* Columns of a lower triangle. */
void triangle(int n, double *a) {
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++) {
            double s = a[i * n + j];
            for (int k = 0; k < j; k++) s -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = s;
        }
}

/* What is read is written again in the next sweep. */
void sweeps(int n, int count, double *u) {
    for (int s = 0; s < count; s++)
        for (int i = 1; i < n; i++) u[i] = sin(u[i - 1]) * u[i];
}

/* The same cell again after so many iterations. */
void ring(int n, int size, const double *x, double *r) {
    for (int i = 0; i < n; i++) r[i % size] = sin(r[(i + 1) % size]) * x[i];
}

/* Rows that reach into the next one. */
void overlapping(int m, int n, double *a) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m + 2; j++) a[i * m + j + 1] = sin(a[i * m + j]) * a[i * m + j + 1];
}

/* A row is overwritten when all of the next one is known. */
void rolling(int n, int m, const double *x, double *now, double *next) {
    for (int i = 0; i < n; i++) {
        next[0] = now[m - 1] * x[i];
        for (int j = 1; j < m; j++) next[j] = sin(next[j - 1]) * now[j] + now[j - 1];
        for (int j = 0; j < m; j++) now[j] = next[j];
    }
}

/* Running sums of each row: the array is another one in every iteration, and read many times in each. */
void running(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double t[16];
        for (int j = 0; j < 16; j++) t[j] = x[i * 16 + j];
        for (int j = 1; j < 16; j++) t[j] += 0.1 * t[j - 1] * t[j - 1];
        for (int j = 0; j < 16; j++) {
            double s = 0;
            for (int k = 0; k < 16; k++) s += t[k] * t[(j * k) % 16];
            y[i * 16 + j] = s;
        }
    }
}

/* Of some rows alone. */
void chosen(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        if (x[i * 16] > 0.6) continue;
        double t[16];
        for (int j = 0; j < 16; j++) t[j] = x[i * 16 + j];
        for (int j = 1; j < 16; j++) t[j] += 0.1 * t[j - 1] * t[j - 1];
        for (int j = 0; j < 16; j++)
            for (int k = 0; k < 16; k++) y[i * 16 + j] += t[k] * t[(j + k * k) % 16];
    }
}

/* Such an array that changes while it is read. */
void rounds(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double t[16];
        for (int j = 0; j < 16; j++) t[j] = x[i * 16 + j];
        for (int r = 0; r < 3; r++) {
            for (int j = 0; j < 16; j++)
                for (int k = 0; k < 16; k++) y[i * 16 + j] += t[k] * t[(j + k * k) % 16];
            for (int j = 1; j < 16; j++) t[j] = sin(t[j - 1]) * t[j];
        }
    }
}
