#include <math.h>

/* Each number is read once. */
void once(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
}

/* The norm first, then each number by it: only the second loop's reverse comes first. */
void scaled(int n, const double *x, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = x[i] / s;
}

/* Records of three, from the last number on. */
void columns(int n, const double *x, double *y) {
    for (int i = 0; i < n / 3; i++)
        for (int j = 0; j < 3; j++) y[i] += x[3 * i + 2 - j] * x[3 * i + 2 - j];
}

/* Two reads of one place in one iteration. */
void both_ends(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * sin(x[n - 1 - i]);
}

/* Neighbours share places, in loops that are turned. */
void shared(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i / 2] * x[i / 2];
}

/* A row that all rows read: the place comes again in each of them. */
void broadcast(int n, const double *x, double *y) {
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < n; i++) y[i] += (j + 1) * x[i] * x[i];
}

/* Not all numbers are read. */
void some(int n, const double *x, double *y) {
    for (int i = 0; i < n - 2; i++) y[i] = x[i] * x[i + 2 - 2];
}

/* Whether one is read depends on another one. */
void chosen(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++)
        if (i % 3 == 0) y[i] = exp(x[i]);
}

/* Later iterations read what earlier ones did. */
void behind(int n, const double *x, double *y) {
    for (int i = 1; i < n; i++) y[i] = x[i] * y[i - 1] + x[i - 1];
}

/* Loops that are left early. */
void early(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        y[i] = x[i] * x[i];
        if (y[i] > 0.5) break;
    }
}

/* Local memory, in each iteration again. */
void local(int n, const double *x, double *y) {
    double t[64];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++) t[i] = sin((k + 1) * x[i]);
        for (int i = 0; i < n; i++) y[i] += t[i] * t[n - 1 - i];
    }
}
