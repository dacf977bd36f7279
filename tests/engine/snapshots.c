/* Memory that a loop reads as it was in front of it, and that is overwritten before the reverse sweep comes to it. */
#include <stdlib.h>
#include <string.h>

double copied_back(int steps, int n, double *x) {
    double *next = malloc(n * sizeof *next), s = 0;
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++) next[i] = x[i] + 0.3 * x[i] * (x[i + 1] - x[i - 1]);
        next[0] = x[0] * x[1];
        next[n - 1] = x[n - 1];
        memcpy(x, next, n * sizeof *x);
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    free(next);
    return s;
}

double take_turns(int steps, int n, double *x, double *y) {
    double *from = x, *to = y, s = 0;
    for (int i = 0; i < n; i++) y[i] = 0.5 * x[i];
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++) to[i] = x[0] + from[i - 1] * from[i] - 0.2 * from[i + 1] * from[i];
        double *other = from;
        from = to;
        to = other;
    }
    for (int i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}

double two_ways(int steps, int n, double *x) {
    double next[64], s = 0;
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < n; i++) {
            double a = x[(i + 1) % n], b = x[(i + n - 2) % n];
            next[i] = 0.9 * x[i] + (a > 0.6 ? 0.1 * a * b * x[(7 * i) % n] : 0.2 * a);
        }
        for (int i = 0; i < n; i++) x[i] = next[i];
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* Only the run knows how many steps there are, and how many neighbours; some have none. */
double open_ended(int steps, int n, double *x) {
    double next[64], s = 0;
    for (int t = 0; t < steps || s > 50; t++) {
        for (int i = 0; i < n; i++) {
            double a = 1;
            for (int j = 0; j < (i + t) % 4; j++) a *= x[(5 * i + 3 * j) % n] * x[(i + j) % n];
            next[i] = 0.5 * x[i] + 0.3 * a;
        }
        s = 0;
        for (int i = 0; i < n; i++) s += x[i] = next[i];
    }
    return s;
}

/* What the loop has written when it reads it is no longer what was in front of the loop. */
double in_place(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = 1; i < n - 1; i++) x[i] = 0.9 * x[i] + 0.3 * x[i - 1] * x[i + 1] * x[i];
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* A loop that never runs would read beyond the buffer. */
double never(int steps, int n, double *x) {
    double next[64], s = 0;
    for (int i = 0; i < n; i++) next[i] = 0.5 * x[i];
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < n - 1; i++) next[i] = x[i] * x[i + 1] + next[i];
        for (int i = n; i < n - t; i++) next[i % 8] += x[1000000 + i] * x[1000001 + i];
        for (int i = 0; i < n; i++) x[i] = 0.5 * next[i];
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* There are three numbers at least, and more. */
static double longer(int depth, int n, double x[static 3]) {
    double next[64], product = 0;
    for (int t = 0; t < 3; t++) {
        for (int i = 1; i < n - 1; i++) next[i] = 0.5 * x[i] + 0.3 * x[i - 1] * x[i] * x[i + 1];
        for (int i = 1; i < n - 1; i++) x[i] = next[i];
    }
    if (depth > 0) product = longer(depth - 1, n, x) * longer(depth / 2, n, x);
    return product + x[n / 2];
}

double at_least(int steps, int n, double *x) { return longer(steps - 3, n, x); }

/* Memory that is allocated, of a known size. */
double allocated(int steps, int n, double *x) {
    double *here = malloc(40 * sizeof *here), s = 0;
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < n; i++) here[i] = x[i];
        for (int i = 0; i < n; i++) x[i] = 0.9 * here[i] + 0.1 * here[(7 * i) % n] * here[(3 * i + 1) % n];
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    free(here);
    return s;
}

/* It may be gone where the loop begins, which does nothing then. */
double given_back(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++) {
        double *here = malloc(40 * sizeof *here);
        for (int i = 0; i < n; i++) here[i] = x[i];
        int left = t % 3 == 1 ? 0 : n;
        if (left == 0) free(here);
        for (int i = 0; i < left; i++) x[i] = 0.9 * here[i] + 0.1 * here[(7 * i) % n] * here[(3 * i + 1) % n];
        if (left != 0) free(here);
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* What the loop reads it writes later or never: it is as it was in front of the loop. */
double ahead(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n - 2; i++) x[i] = 0.9 * x[i] * x[i + 1] + 0.3 * x[i + 2] * x[i + 1] * x[i];
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* Rows below the one that an iteration of the outer loop writes. */
double below(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n / 3; i++)
            for (int j = 0; j < 3; j++)
                for (int k = i + 1; k < n / 3; k++) x[3 * i + j] += 0.1 * x[3 * k + j] * x[3 * k + j];
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* The same read after it was written: by the iteration before, by a loop that comes first, and from the other end. */
double behind(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n - 2; i++) {
            x[i + 2] *= 0.5;
            s += x[i] * x[(i + t % 2)] * x[i + 1] * x[i];
        }
    return s;
}

double written_before(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = 1; i < n; i++) {
            for (int j = i - 1; j <= i; j++) x[j] *= 0.9 + 0.01 * j;
            for (int k = i; k < n; k++) s += x[k] * x[k] * x[k];
        }
    return s;
}

double downwards(int steps, int n, double *x) {
    double s = 0;
    for (int t = 0; t < steps; t++)
        for (int i = n - 3; i >= 0; i--) x[i] = 0.5 * x[i + 2] * x[i + 1] * (1 + x[i]);
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

/* Several threads may share the loop: there is one copy in front of it. */
double shared(int steps, int n, double *x) {
    double *next = malloc(n * sizeof *next), s = 0;
    for (int t = 0; t < steps; t++) {
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++) next[i] = x[i] + 0.3 * x[i] * (x[i + 1] - x[i - 1]);
        next[0] = x[0] * x[1];
        next[n - 1] = x[n - 1];
        memcpy(x, next, n * sizeof *x);
    }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    free(next);
    return s;
}

/* Each iteration of a loop that several threads may share would have its own copies to make. */
double shared_around(int steps, int n, double *x) {
    double s = 0;
#pragma omp parallel for
    for (int r = 0; r < n / 11; r++)
        for (int t = 0; t < steps; t++) {
            double next[11], *row = x + 11 * r;
            for (int i = 0; i < 11; i++) next[i] = row[i] + 0.3 * row[i] * (row[(i + 1) % 11] - row[(i + 10) % 11]);
            for (int i = 0; i < 11; i++) row[i] = next[i];
        }
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
