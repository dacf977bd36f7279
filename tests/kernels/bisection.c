/* Bisection to bracket a root of x^3 + p x - q, then two Newton steps from the midpoint. */
double bisection(double p, double q, double lo, double hi) {
    for (int i = 0; i < 5; i++) {
        double mid = 0.5 * (lo + hi);
        if (mid * mid * mid + p * mid - q > 0)
            hi = mid;
        else
            lo = mid;
    }
    double x = 0.5 * (lo + hi);
    for (int i = 0; i < 2; i++) x -= (x * x * x + p * x - q) / (3 * x * x + p);
    return x;
}
