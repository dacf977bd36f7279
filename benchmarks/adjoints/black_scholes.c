/* The sensitivities of option prices ("Greeks"), in closed form: spot * density(d1) equals bond * density(d2). */
#include <math.h>

static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

void black_scholes_adjoint(int n, const _Bool *put, const double *spot, const double *strike, double rate, double vol,
                           double time, const double *price_bar, double *spot_bar, double *strike_bar, double *rate_bar,
                           double *vol_bar, double *time_bar) {
    double root_time = sqrt(time), root = vol * root_time, inverse = 1 / root, discount = exp(-rate * time);
    double drift = (rate + 0.5 * vol * vol) * time, to_rate = 0, to_vol = 0;
    for (int i = 0; i < n; i++) {
        double sign = put[i] ? -1 : 1, bar = price_bar[i];
        double d1 = (log(spot[i] / strike[i]) + drift) * inverse, d2 = d1 - root;
        double density = 0.39894228040143268 * exp(-0.5 * d1 * d1);
        double first = sign * normal_cdf(sign * d1), second = sign * discount * normal_cdf(sign * d2);
        spot_bar[i] = bar * first;
        strike_bar[i] = -bar * second;
        to_rate += bar * strike[i] * second;
        to_vol += bar * spot[i] * density;
    }
    *rate_bar = time * to_rate;
    *vol_bar = root_time * to_vol;
    *time_bar = rate * to_rate + 0.5 * vol / root_time * to_vol;
}
