/* Thomas algorithm: diagonals in, the right-hand side overwritten, modified coefficients in scratch. */
void tridiagonal(int n, const double *a, const double *b, const double *c, double *cp, double *d) {
    cp[0] = c[0] / b[0];
    d[0] /= b[0];
    for (int i = 1; i < n; i++) {
        double m = 1 / (b[i] - a[i] * cp[i - 1]);
        cp[i] = c[i] * m;
        d[i] = (d[i] - a[i] * d[i - 1]) * m;
    }
    for (int i = n - 2; i >= 0; i--) d[i] -= cp[i] * d[i + 1];
}
