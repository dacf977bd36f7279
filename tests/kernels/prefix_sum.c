/* Running sum of squares in place, forward, then a running product of the shifted result. */
void prefix_sum(int n, double *x) {
    for (int i = 0; i < n; i++) x[i] = (i ? x[i - 1] : 0) + x[i] * x[i];
    for (int i = n - 2; i >= 0; i--) x[i] = x[i] + 0.1 * x[i] * x[i + 1];
}
