/* Heat in a rod whose conductivity grows with temperature: explicit steps, ends held. */
void heat(int n, int steps, double alpha, const double *u, double *result, double *work) {
    for (int i = 0; i < n; i++) result[i] = u[i];
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < n; i++) work[i] = result[i];
        for (int i = 1; i + 1 < n; i++) {
            double k = alpha * (1 + 0.1 * work[i] * work[i]);
            result[i] = work[i] + k * (work[i - 1] - 2 * work[i] + work[i + 1]);
        }
    }
}
