// The right-hand side of the Brusselator on a torus of n x n points: reaction and diffusion of two substances.
static double laplace(int n, const double *u, int i, int j) {
    int up = i == 0 ? n - 1 : i - 1, down = i == n - 1 ? 0 : i + 1;
    int left = j == 0 ? n - 1 : j - 1, right = j == n - 1 ? 0 : j + 1;
    return u[up * n + j] + u[down * n + j] + u[i * n + left] + u[i * n + right] - 4 * u[i * n + j];
}

void brusselator(int n, double a, double b, double alpha, double t, const double *u, const double *v, double *du,
                 double *dv) {
    double dx = 1.0 / (n - 1), rate = alpha / (dx * dx);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int k = i * n + j;
            double x = i * dx, y = j * dx;
            double inside = (x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6) <= 0.01 && t >= 1.1 ? 5.0 : 0.0;
            double uuv = u[k] * u[k] * v[k];
            du[k] = b + uuv - (a + 1) * u[k] + rate * laplace(n, u, i, j) + inside;
            dv[k] = a * u[k] - uuv + rate * laplace(n, v, i, j);
        }
}
