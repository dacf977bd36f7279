/* Loops whose iterations may be reversed in any order, and some that look like it. */

double maps(int n, const double *x, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        y[i] = x[i] * x[n - 1 - i];
        if (y[i] > 0.3) s += y[i] * x[i];
    }
    return s;
}

double stencil(int n, const double *x, double *y) {
    double u[512], s = 1;
    for (int i = 0; i < n; i++) u[i] = x[i];
    for (int t = 0; t < 3; t++) {
        for (int i = 1; i < n - 1; i++) y[i] = u[i] + 0.2 * u[i - 1] * u[i + 1];
        for (int i = 1; i < n - 1; i++) u[i] = y[i] * u[i];
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < n / 4; i++) s -= u[4 * i + k] * x[i];
    return s;
}

/* What is left behind the loop is that of the last iteration. */
double last_one(int n, const double *x, double *y) {
    double a = 0;
    for (int i = 0; i < n; i++) y[i] = a = x[i] * x[i];
    return a * x[0];
}

/* The sum before the last term. */
double but_one(int n, const double *x, double *y) {
    double s = 0, before = 0;
    for (int i = 0; i < n; i++) {
        before = s;
        s += x[i] * x[i];
        y[i] = x[i];
    }
    return before;
}

double prefix(int n, const double *x, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) y[i] = s += x[i] * x[i];
    return s;
}

/* The last store is the one that counts. */
double one_place(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[(7 * i + i / 16) % 16] = x[i] * x[i];
    return 0;
}

double neighbour(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    for (int i = 1; i < n; i++) y[i] = 0.5 * y[i - 1] * x[i];
    return 0;
}

double doubled(int n, const double *x, double *y) {
    double s = 1;
    for (int i = 0; i < n; i++) s += 0.001 * s + x[i] * y[i];
    return s;
}

/* What the last iteration of those in the middle loads, the end of the ring reads as well. */
double ring(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        int r = i == n - 1 ? 0 : i + 1, rr = r == n - 1 ? 0 : r + 1;
        y[i] = x[i] * x[r] - x[rr];
    }
    return 0;
}
