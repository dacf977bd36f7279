/* Bessel functions J_0 .. J_n by downward recurrence and normalisation. */
double bessel(int n, double x, double *j) {
    double above = 0, here = 1e-30, sum = 0;
    for (int k = 2 * n + 20; k > 0; k--) {
        double below = 2 * k / x * here - above;
        above = here;
        here = below;
        if (k - 1 < n) j[k - 1] = here;
        if (k - 1 > 0 && (k - 1) % 2 == 0) sum += 2 * here;
    }
    sum += here;
    for (int k = 0; k < n; k++) j[k] /= sum;
    return sum * 1e-30;
}
