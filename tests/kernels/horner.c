/* Polynomial by Horner's rule at several points, with its first derivative. */
void horner(int degree, int n, const double *c, const double *x, double *p, double *dp) {
    for (int i = 0; i < n; i++) {
        double v = 0, d = 0;
        for (int k = degree; k >= 0; k--) {
            d = d * x[i] + v;
            v = v * x[i] + c[k];
        }
        p[i] = v;
        dp[i] = d;
    }
}
