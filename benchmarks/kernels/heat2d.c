/* Explicit heat equation on a square, two grids in turn; the rim stays. */
void heat2d(int n, int steps, double r, double *v, double *u) {
    for (int i = 0; i < n * n; i++) v[i] = u[i];
    for (int s = 0; s < steps; s++) {
        double *from = s % 2 ? v : u, *to = s % 2 ? u : v;
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) {
                int p = i * n + j;
                to[p] = from[p] + r * (from[p - n] + from[p + n] + from[p - 1] + from[p + 1] - 4 * from[p]);
            }
    }
}

/* The same, the new grid copied back after every step. */
void heat2d_copied(int n, int steps, double r, double *v, double *u) {
    for (int s = 0; s < steps; s++) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) {
                int p = i * n + j;
                v[p] = u[p] + r * (u[p - n] + u[p + n] + u[p - 1] + u[p + 1] - 4 * u[p]);
            }
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) u[i * n + j] = v[i * n + j];
    }
}

/* Jacobi sweeps as in PolyBench: there and back. */
void jacobi2d(int n, int steps, double *a, double *b) {
    for (int s = 0; s < steps; s++) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                b[i * n + j] = 0.2 * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j] +
                                      a[(i - 1) * n + j]);
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                a[i * n + j] = 0.2 * (b[i * n + j] + b[i * n + j - 1] + b[i * n + j + 1] + b[(i + 1) * n + j] +
                                      b[(i - 1) * n + j]);
    }
}
