#include <math.h>

/* Each number once. */
void once(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
}

/* One of two stores. */
void either(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        if (x[i] > 0.6)
            y[i] = sin(x[i]);
        else
            y[i] = x[i] * x[i] * x[i];
    }
}

/* Zeros first, then sums over them. */
void product(int n, const double *a, const double *b, double *c) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) c[i * n + j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

/* The rows of a triangle, one after the other; later rows read earlier ones. */
void rows(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double left = j > 0 ? x[i - j] : 1;
            y[i * n + j] = i > 0 && j < i ? y[(i - 1) * n + j] * left * x[j] : x[i] * left;
        }
}

/* Every number again in each round: those of the last one alone count. */
void rounds(int n, int count, const double *x, double *y) {
    for (int t = 0; t < count; t++)
        for (int i = 0; i < n; i++) y[i] = sin(x[(i + t) % n]) * (t + 1);
}

/* Neighbours overwrite one another. */
void windows(int n, const double *x, double *y) {
    for (int i = 0; i + 3 <= n; i += 2)
        for (int j = 0; j < 3; j++) y[i + j] = x[i] * x[j];
}

/* What was written is read, and overwritten. */
void in_place(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    for (int i = 0; i + 1 < n; i++) y[i] = y[i] * y[i + 1] * x[i];
}

/* Only data tell where. */
void scattered(int n, const double *x, const int *at, double *y) {
    for (int j = 0; j < n; j++) y[j] = x[j];
    for (int i = 0; i < n; i++) y[at[i]] = x[i] * x[i];
}

/* Two stores of which the second one may come to a place of the first. */
void folded(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        y[i] = x[i] * x[i];
        y[n - 1 - i] = sin(x[i]);
    }
}

/* Working memory of each row, and numbers in it that the next row finds. */
void worked(int n, const double *x, double *y, double *t) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) t[j] = i > 0 && j % 3 == 0 ? t[j] * x[i] : x[i] * x[j];
        y[i] = t[i] * t[n - 1 - i];
    }
}

/* Filled with zeros, then written here and there. */
void filled(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int i = 0; i < n; i += 3) y[i] = x[i] * x[i];
}

/* Written, then filled with zeros, then written. */
void emptied(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    for (int i = 2; i < n; i++) y[i] = 0;
    for (int i = 4; i < n; i++) y[i] = sin(x[i]) * y[i - 4];
}

/* The same once more in a function that calls itself. */
static void halves(int first, int last, const double *x, double *y) {
    if (last - first == 1) {
        y[first] = y[first] * x[first];
        return;
    }
    halves(first, (first + last) / 2, x, y);
    halves((first + last) / 2, last, x, y);
}
void recursive(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    halves(0, n, x, y);
}
