/* Nests whose inner loops differ in length; every sine is kept. */
#include <math.h>

double repeated(int steps, int n, const double *x) {
    double s = 1;
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) s = sin(s + x[i] * x[j]);
    return s;
}

double corner(int n, const double *x) {
    double s = 1;
    for (int k = 0; k < n; k++)
        for (int i = k; i < n; i++)
            for (int j = i; j < n; j++) s = sin(s + x[i] * x[j] * x[k]);
    return s;
}

double doubled(int n, const double *x) {
    double s = 1;
    for (int length = 2; length <= n; length *= 2)
        for (int i = 0; i < n; i += length)
            for (int j = 0; j < length / 2; j++) s = sin(s + x[i + j] * x[i + j + length / 2]);
    return s;
}

double left_early(int n, const double *x) {
    double s = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            s = sin(s + x[i] * x[j]);
            if (s > 0.95) break;
        }
    return s;
}

double empty_first(int n, const double *x) {
    double s = 1;
    for (int i = n - 1; i >= 0; i--)
        for (int j = 0; j < i; j += 2) s = sin(s + x[i] * x[j]);
    return s;
}

// The inner loop never runs, and nothing but its bounds says so.
double never(int n, const double *x) {
    double t = 0.3;
    for (int i = n - 1; i >= 0; i--) {
        if (x[i] > 0.8) continue;
        for (int j = i > 4 ? 4 : i; j < i; j++)
            for (int k = j > 4 ? 4 : j; k < n - j - i; k++) t = t * cos(x[(i + j + k) % n]) + x[k] * t * t;
        t += x[i] * x[i];
    }
    return t;
}

// The loop around counts, and the length goes along; more iterations than any array has whose length is not known.
double halved(int levels, int n, const double *x) {
    double s = 1;
    for (int l = 0; l < levels; l++) {
        for (int i = 0; i < n; i++) s = sin(s + x[i]);
        n /= 2;
    }
    return s;
}

// What all rows of a product read is kept once; of a triangle, too.
double once(int steps, int n, const double *x) {
    double s[64], z[64], t = 0;
    for (int i = 0; i < n; i++) s[i] = x[i];
    for (int k = 0; k < steps; k++) {
        for (int i = 0; i < n; i++) {
            double a = 0;
            for (int j = 0; j <= i; j++) a += s[j] * x[(i + j) % n];
            z[i] = sin(a);
        }
        for (int i = 0; i < n; i++) s[i] = z[i];
    }
    for (int i = 0; i < n; i++) t += s[i];
    return t;
}

// Rows that write what the next one reads: each has its own.
double each(int steps, int n, const double *x) {
    double s[64], t = 0;
    for (int i = 0; i < n; i++) s[i] = x[i];
    for (int k = 0; k < steps; k++)
        for (int i = 0; i < n; i++) {
            double a = 0;
            for (int j = 0; j < n; j++) a += s[j] * x[(i + j) % n];
            s[i] = sin(a);
        }
    for (int i = 0; i < n; i++) t += s[i];
    return t;
}

// The first of three lengths is a constant; the others are read, and may be anything.
double read(const long *counts, const double *x) {
    long n = 3;
    double s = 1;
#pragma clang loop unroll(disable)
    for (int i = 0; i < 3; i++) {
        for (long j = 0; j < n; j++) s = sin(s + x[i]);
        n = counts[i];
    }
    return s;
}

// A triangle, in a measure that is read.
double scaled(const int *unit, const double *x) {
    double s = 1;
    int k = unit[0];
    for (int i = 0; i < 40; i++)
        for (long j = 0; j < (long)k * i; j++) s = sin(s + x[i]);
    return s;
}
