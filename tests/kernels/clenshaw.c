/* Chebyshev series by Clenshaw's recurrence: two values carried, exchanged in each step. */
double clenshaw(int n, const double *c, double x) {
    double b1 = 0, b2 = 0;
    for (int k = n - 1; k > 0; k--) {
        double b0 = 2 * x * b1 - b2 + c[k];
        b2 = b1;
        b1 = b0;
    }
    return x * b1 - b2 + c[0];
}
