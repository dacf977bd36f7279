/* Option prices by the Black-Scholes formula; a flag array chooses call or put. */
#include <math.h>

static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

void black_scholes(int n, const _Bool *put, const double *spot, const double *strike, double rate, double vol,
                   double time, double *price) {
    for (int i = 0; i < n; i++) {
        double root = vol * sqrt(time);
        double d1 = (log(spot[i] / strike[i]) + (rate + 0.5 * vol * vol) * time) / root;
        double d2 = d1 - root, bond = strike[i] * exp(-rate * time);
        price[i] = put[i] ? bond * normal_cdf(-d2) - spot[i] * normal_cdf(-d1)
                          : spot[i] * normal_cdf(d1) - bond * normal_cdf(d2);
    }
}
