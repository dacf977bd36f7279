/* Gauss-Seidel sweeps on a 2-D Poisson problem: each point reads neighbours that were overwritten a moment ago. */
void gauss_seidel(int n, int sweeps, const double *f, double *u) {
    for (int s = 0; s < sweeps; s++)
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                u[i * n + j] = 0.25 * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] * u[i * n + j + 1] -
                                       f[i * n + j]);
}
