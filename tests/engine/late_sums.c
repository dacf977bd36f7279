/* From the right to the left. */
void backwards(int n, const double *x, double *y) {
    for (int i = n - 2; i > 0; i--) y[i] = x[i - 1] * x[i] + 2 * x[i + 1] * x[i + 1];
}

/* In place: what is read has been written a moment ago. */
void in_place(int n, double *x) {
    for (int i = 1; i < n - 1; i++) x[i] = x[i - 1] * 0.3 + x[i] * x[i + 1];
}

/* The results lie where later iterations read. */
void same_array(int n, double *x) {
    for (int i = 1; i < n - 1; i++) x[n + i] = x[i - 1] * x[i] + x[i + 1] * x[n + i + 3];
}

/* A loop in a function that calls itself. */
double recursive(int n, int depth, const double *x) {
    double sum = 0;
    for (int i = 1; i < n - 1; i++) sum += x[i - 1] * x[i + 1] * x[i];
    return depth ? sum + 0.5 * recursive(n, depth - 1, x) : sum;
}

/* The same adjoint for several neighbours, and for several loops. */
void shared(int n, const double *x, double *y) {
    for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + x[i] + x[i + 1];
    for (int i = 2; i < n - 2; i++) y[i] += y[0] * (x[i - 2] + x[i + 2]);
}
