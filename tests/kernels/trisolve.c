/* Forward then backward substitution, L L^T x = b, the right-hand side overwritten by the solution. */
void trisolve(int n, const double *l, double *b) {
    for (int i = 0; i < n; i++) {
        double sum = b[i];
        for (int j = 0; j < i; j++) sum -= l[i * n + j] * b[j];
        b[i] = sum / l[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        double sum = b[i];
        for (int j = i + 1; j < n; j++) sum -= l[j * n + i] * b[j];
        b[i] = sum / l[i * n + i];
    }
}
