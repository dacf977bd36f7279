#include <math.h>
#include <stdlib.h>

/* Each element of a row of c is a sum over columns of b. */
void product(int n, int m, int l, const double *a, const double *b, double *c) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int k = 0; k < l; k++) sum += a[i * l + k] * b[k * m + j];
            c[i * m + j] = tanh(sum);
        }
}

/* A nest for each element, from the right to the left, and two sums, one of which goes through all of them as it is. */
void window(int m, const double *w, const double *x, double *y, double *norm) {
    for (int j = m - 1; j >= 0; j--) {
        double sum = 0, squares = 1;
        for (int p = 0; p < 5; p++)
            for (int q = 0; q < 6; q++) {
                double v = w[6 * p + q] * x[p * (m + 5) + j + q];
                sum += v;
                squares = squares * 0.5 + v * v;
            }
        y[j] = sum / sqrt(squares);
        norm[j] = squares;
    }
}

/* What an element computes before its loop is used in it. */
void distances(int n, int m, const double *c, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double here = exp(0.1 * x[3 * j]), far = 0;
        for (int k = 0; k < n; k++) {
            double d = c[k * m + j] - here;
            far += d * d;
        }
        y[j] = sqrt(far);
    }
}

/* A largest element is no sum, but is carried as one. */
void largest(int n, int m, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double most = x[j];
        for (int k = 1; k < n; k++) most = fmax(most, x[k * m + j]);
        y[j] = most * most;
    }
}

/* What is written for one element is read for the next. */
void in_place(int n, int m, double *x) {
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += x[k * (m + 1) + j] * 0.3;
        x[j + 1] = sum;
    }
}

/* Sums of different lengths. */
void ragged(int m, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int k = 0; k <= j; k++) sum += x[k * m + j] * x[k * m + j];
        y[j] = sum;
    }
}

/* Only some elements are added. */
void some(int n, int m, const double *a, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++)
            if (j + k > 2 && j + k < m) sum += a[k] * x[k * m + j + k];
        y[j] = sum;
    }
}

/* The program may end before all elements have been read. */
void ends(int n, int m, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += x[k * m + j];
        if (!(sum < 1e30)) exit(3);
        y[j] = sum * sum;
    }
}

/* A sum that threads may share. */
void marked(int n, int m, const double *x, double *y) {
    for (int j = 0; j < m; j++) {
        double sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int k = 0; k < n; k++) sum += x[k * m + j] * x[k * m + j];
        y[j] = sum;
    }
}

/* Rows of different lengths. */
void triangle(int n, int m, const double *x, double *y) {
    for (int i = 0; i < m; i++)
        for (int j = i; j < m; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += x[k * m + i] * x[k * m + j];
            y[i * m + j] = sum;
        }
}
