/* Loops over points with loops inside: eight points at a time, where no point sees what another one leaves. */
#include <complex.h>
#include <math.h>

#ifndef REAL
#define REAL double
#endif

/* Both memories of an iteration, sums of all three kinds, and a triangle. */
double distances(int n, int d, const double *l, const double *mean, const double *x, double *u, double *terms,
                 double *far) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) u[j] = x[i * d + j] - mean[j];
        for (int j = 0; j < d; j++) {
            double sum = 0;
            for (int k = 0; k <= j; k++) sum += l[j * d + k] * u[k];
            terms[j] = sum;
        }
        double square = 0;
        for (int j = 0; j < d; j++) square += terms[j] * terms[j] / (1 + fabs(u[j]));
        far[i] = square;
        total += sin(square);
    }
    return total;
}

/* Columns below a diagonal, of which the last one is empty: in reverse, what is added to `u[j]` is in a branch. */
double columns(int n, int d, const double *l, const double *x, double *u, double *q) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) {
            u[j] = x[i * d + j] * x[i * d + j];
            q[j] = l[j * d + j] * u[j];
        }
        for (int j = 0; j < d; j++)
            for (int k = j + 1; k < d; k++) q[k] += l[j * d + k] * u[j];
        double square = 0;
        for (int j = 0; j < d; j++) square += q[j] * q[j];
        total += log(1 + square);
    }
    return total;
}

/* What lies side by side for iterations, from the last to the first; single precision. */
void layers(int n, int d, const REAL *w, const REAL *x, REAL *h, REAL *y) {
    for (int i = n - 1; i >= 0; i--) {
        for (int j = 0; j < d; j++) {
            REAL sum = 0;
            for (int k = 0; k < d; k++) sum += w[j * d + k] * x[k * n + i];
            h[j] = sum > 0 ? sum : (REAL)0.1 * sum;
        }
        REAL sum = 0;
        for (int j = 0; j < d; j++) sum = sum * (REAL)0.5 + h[j] * h[j];
        y[i] = sum;
    }
}

/* Addresses that the data decide, and what stays the same for all. */
double looked_up(int n, int d, int m, const int *which, const double *table, const double *c, double *u) {
    double total = 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) u[j] = table[which[i * d + j] * m + j] * c[0];
        double product = 1;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) product += u[j] * u[k] * c[k];
        total -= product * c[1];
    }
    return total;
}

/* In one function all of `u` is written before it is read, `s` is what the last iteration left there. */
void left(int n, int d, const double *a, double *u, double *y) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) u[j] = a[j] * y[i];
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) u[j] += a[k] * u[k];
        y[i] = u[0] * u[d - 1];
    }
}

/* The last number of `u` is that of the iteration before. */
double kept(int n, int d, const double *a, const double *x, double *u) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j + 1 < d; j++) u[j] = a[j] * x[i];
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum += u[j] * u[k] * a[k];
        u[d - 1] = 0.1 * sin(sum);
        total += sum;
    }
    return total;
}

/* What is read was written by the iteration before. */
void passed_on(int n, int d, const double *a, double *y) {
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum += a[j] * a[k] * sin(y[i] + a[j]);
        y[i + 1] = y[i + 1] + sum * 0.01;
    }
}

/* Iterations go different ways. */
double branches(int n, int d, const double *a, const double *x) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = x[i] > 0 ? 0 : 3; k < d; k++) sum += a[j] * x[i] * a[k];
        total += sum;
    }
    return total;
}

/* Each sum begins with a part of what was added up before. */
double decaying(int n, int d, const double *a, const double *x) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum += a[j] * a[k] * x[i];
        total = 0.9 * total + sum;
    }
    return total;
}

/* Where is added to is not the same for all iterations, and two of them may add to one place. */
void histogram(int n, int d, const int *where, const double *a, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum += a[j] * a[k] * x[i];
        y[where[i]] += sum;
    }
}

/* How far the inner loops run is not the same for all iterations. */
double ragged(int n, const double *a, const double *x) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j <= i; j++)
            for (int k = 0; k < 5; k++) sum += a[j] * a[k] * x[i];
        total += sum * 0.01;
    }
    return total;
}

/* What takes so long that threads share it: in reverse they add to `l`, and to a sum that goes around the loop. */
void solves(int n, int d, double c, const double *l, double *b) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < d; j++) {
            double sum = b[i * d + j] * c;
            for (int k = 0; k < j; k++) sum -= l[j * d + k] * b[i * d + k];
            b[i * d + j] = sum / l[j * d + j];
        }
}

/* Loops of 70 iterations and fewer. */
void shorter(int n, int d, const double *w, const double *x, double *y) {
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double sum = 0;
            for (int k = 0; k < d; k++) sum += w[k] * x[i * d + k] * w[j % d];
            y[i] = 0.5 * y[i] + sum;
        }
}

/* A factor of a matrix in place: all rows below the diagonal read row j and write their own column j, and the last
   quotient of a column is used behind its loop. LLVM has two ends of an iteration over i: for j = 0, and for all
   others. */
double factor(int n, double *a) {
    double total = 0;
    for (int j = 0; j < n; j++) {
        double pivot = a[j * n + j], last = 0;
        for (int k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        a[j * n + j] = pivot = sqrt(pivot);
        for (int i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = last = sum / pivot;
        }
        for (int i = 0; i < j; i++) a[i * n + j] = 0;
        total += last * last;
    }
    return total;
}

/* The row above is read but for the column that is written; and, from `first` = 0 on, with it. */
void above(int n, int d, int first, const double *w, double *a) {
    for (int i = 1; i < n; i++) {
        double sum = 0;
        for (int k = first; k < d; k++) sum += a[(i - 1) * d + k] * w[k] * a[k];
        a[i * d] = sum;
    }
}

/* A matrix that every iteration fills, row by row. */
double matrices(int n, int d, const double *x, double *u) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) u[j * d + k] = x[i * d + j] * x[i * d + k] + j;
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum = sum * 0.5 + u[j * d + k] / (1 + u[k * d + j] * u[k * d + j]);
        total += sin(sum);
    }
    return total;
}

/* A system for each row of `u`, read with the rows beside it. All but the last number of `c` and of `d` is an
   iteration's own, and `c` is the same for all; in reverse, iterations add to the rows of each other. */
void systems(int n, int d, double r, const double *u, double *c, double *e, double *v) {
    for (int i = 1; i <= n; i++) {
        c[0] = e[0] = 0;
        for (int j = 1; j + 1 < d; j++) {
            double b = r * u[(i - 1) * d + j] + u[i * d + j] + r * u[(i + 1) * d + j], pivot = 1 + 2 * r + r * c[j - 1];
            c[j] = -r / pivot;
            e[j] = (b + r * e[j - 1]) / pivot;
        }
        double *row = v + (i - 1) * d;
        row[d - 1] = 0;
        for (int j = d - 2; j > 0; j--) row[j] = e[j] - c[j] * row[j + 1];
        row[0] = 0;
    }
}

/* Sums whose order is free are added to two places, which the next iteration adds to as well: one after the other, or
   both loaded before either is stored. */
void windows(int n, int d, int both, const double *a, const double *x, double *y) {
#pragma clang fp reassociate(on)
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            for (int k = 0; k < d; k++) sum = sum * 0.5 + a[j] * a[k] * x[i];
        if (both) {
            double first = y[i], second = y[i + 1];
            y[i + 1] = second + sum;
            y[i] = first + sum;
        } else {
            y[i] += sum;
            y[i + 1] += sum;
        }
    }
}

/* Which of all is nearest, and its weight: that of the first one where there is none. */
double nearest(int n, int d, const double *w, const double *x, const double *y) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double best = 0.5;
        int which = -1;
        for (int j = 0; j < d; j++)
            if ((x[i] - y[j]) * (x[i] - y[j]) < best) {
                best = (x[i] - y[j]) * (x[i] - y[j]);
                which = j;
            }
        total += w[which > 0 ? which : 0] * x[i];
    }
    return total;
}

/* Each path begins at the same rates; of those that are left after each step, all are moved. */
double rates(int n, int d, const double *start, const double *s, const double *z, double *l) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) l[j] = start[j];
        for (int t = 0; t < d - 1; t++) {
            double drift = 0;
            for (int j = t + 1; j < d; j++) {
                drift += s[j - t - 1] * l[j] / (2 + l[j] * l[j]);
                l[j] *= exp(0.01 * (drift + s[j - t - 1] * z[i * d + t]));
            }
        }
        total += l[d - 1] * l[d / 2];
    }
    return total;
}

/* Waves through layers: products and quotients of complex numbers, of which `I * x` has 0 * x. */
double films(int n, int d, const double *wave, const double *depth, const double *loss) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double complex a = 1, b = 0.5;
        for (int j = 0; j < d; j++) {
            double complex m = 2 - I * loss[j], phase = m * depth[j] / (2 + wave[i]), next = a + b * I * phase / m;
            b = 0.5 * (b + a * I * phase * m);
            a = next;
        }
        total += creal(a / (a + 2 * b));
    }
    return total;
}

/* Light along rays through cells, most of which several rays come to at once. */
double rays(int n, int d, int m, const int *cell, const double *f, const double *density) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double light = 1, seen = 0;
        for (int j = 0; j < d; j++) {
            const double *at = density + cell[i * d + j], x = f[i * d + j];
            double here = at[0] * (1 - x) + at[1] * x, gone = here / (2 + here * here);
            seen += light * gone * (1 + here * here);
            light *= 1 - gone;
        }
        total += seen * seen;
    }
    return total;
}

/* What a path is off at each of its steps, in the order of the source. */
double fits(int n, int d, const double *a, const double *x, const double *y) {
    double off = 0;
    for (int i = 0; i < n; i++) {
        double u = x[i];
        for (int j = 0; j < d; j++) {
            u += 0.1 * a[j] * u * (1 - u * u);
            off += (u - y[j]) * (u - y[j]) / (1 + u * u);
        }
    }
    return off;
}
