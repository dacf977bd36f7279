#include <math.h>
#include <stdlib.h>

/* In the order of the source, and not all of them. */
double ordered(int n, const double *w, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        if (i % 7 == 3) continue;
        s += w[i] / x[i];
        s -= sqrt(x[i]);
    }
    return s;
}

/* Each pair adds to both of its places. */
void forces(int n, const double *q, double *f) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double x = q[2 * i] - q[2 * j], y = q[2 * i + 1] - q[2 * j + 1], r2 = x * x + y * y + 0.1;
            double w = 1 / (r2 * sqrt(r2));
            f[2 * i] += w * x;
            f[2 * i + 1] += w * y;
            f[2 * j] -= w * x;
            f[2 * j + 1] -= w * y;
        }
}

/* What is read in the last iteration was written in it: nothing of this can come first. */
void newton(int n, double a, double *x) {
    for (int i = 1; i < n; i++) x[i] = 0.5 * (x[i - 1] + a / x[i - 1]) + x[i];
}

/* The same for every i: from k alone, and from what is known before. */
void waves(int n, int m, double c, const double *x, double *y) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++) y[i] += x[i + k] * cos(c * k) / (1 + k);
}

/* Rows of several lengths, the first of none. */
void stages(int n, double c, double *y) {
    for (int m = 0; m < 5; m++) {
        int length = m * m * m;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < length; k++) y[length * i + k] += sin(c * k) * y[length * i + k];
    }
}

/* A row that is stored to the same places for every i, if the inner loop runs at all. */
void tabled(int n, int m, double c, const double *x, double *t, double *y) {
    for (int i = 0; i < n; i++) {
        double s = 0;
        if (c > 0)
            for (int k = 0; k < m; k++) {
                t[k] = sin(c * k);
                s += x[i + k] * t[k];
            }
        y[i] = s;
    }
}

/* The same, but that each i leaves something else there. */
void tabled_anew(int n, int m, double c, const double *x, double *t, double *y) {
    for (int i = 0; i < n; i++) {
        double s = 0;
        if (c > 0)
            for (int k = 0; k < m; k++) {
                t[k] = sin(c * k);
                s += x[i + k] * t[k];
            }
        y[i] = s;
        t[i % m] += x[i];
    }
}

/* Rows in arms of what no loop changes, of which one comes before the inner loop around it, the other before both. */
void arms(int n, int m, double c, const double *x, double *t, double *y) {
    for (int a = 0; a < n; a++) {
        double d = c + a;
        for (int b = 0; b < n; b++) {
            double s = 0;
            if (c > 0)
                for (int k = 0; k < m; k++) s += x[b + k] * cos(c * k);
            else
                for (int k = 0; k < m; k++) {
                    t[k] = sin(d * k);
                    s += x[b + k] * t[k];
                }
            y[b] += s;
        }
    }
}

/* What goes to `r` nothing else of the loop needs to come first for; `z` is read. */
double recorded(int n, const double *x, double *r, double *z) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        r[i] = sqrt(x[i]);
        z[i] += 1 / x[i];
        total += z[i] / r[i];
    }
    return total;
}

/* Each spring pulls at two points that data say; how long it is goes to memory that nothing else of the loop comes to.
 */
double springs(int n, int m, const int *ends, const double *x, double *f) {
    double *length = malloc(m * sizeof(double)), total = 0;
    for (int k = 0; k < m; k++) {
        int a = ends[2 * k], b = ends[2 * k + 1];
        double d = x[a] - x[b], pull;
        length[k] = sqrt(1 + d * d);
        pull = d - d / length[k];
        f[a] -= pull;
        f[b] += pull;
    }
    for (int k = 0; k < m; k++) total += length[k] * x[k % n];
    free(length);
    return total;
}

/* Units whose sum, in the order of the source, is what all of the next step see. */
double units(int n, int m, const double *a, const double *w) {
    double y = 0.1;
    for (int t = 0; t < n; t++) {
        double s = 0;
        for (int j = 0; j < m; j++) s += w[j] * tanh(a[j] * y);
        y = s;
    }
    return y;
}
