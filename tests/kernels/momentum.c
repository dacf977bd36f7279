/* Gradient descent with momentum and decay on a fixed quadratic: two states in place, active scalars by value. */
void momentum(int n, int steps, double rate, double beta, const double *curvature, double *x, double *v) {
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < n; i++) v[i] = beta * v[i] - rate * curvature[i] * x[i];
        for (int i = 0; i < n; i++) x[i] += v[i];
        rate *= 0.9;
    }
}
