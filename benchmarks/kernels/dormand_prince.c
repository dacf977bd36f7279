// y' = f(t, y) of one variable by the method of Dormand and Prince (orders 5 and 4), whose step adapts to the error.
#include <math.h>

static double slope(double t, double y, const double *p) { return p[0] * y * (1 - y / p[1]) + p[2] * cos(t); }

void dormand_prince(double y0, const double *p, double end, double tolerance, double *result, int *steps) {
    double t = 0, y = y0, h = 1e-3;
    int count = 0;
    while (t < end) {
        if (t + h > end) h = end - t;
        double k1 = slope(t, y, p);
        double k2 = slope(t + h / 5, y + h * k1 / 5, p);
        double k3 = slope(t + 3 * h / 10, y + h * (3 * k1 / 40 + 9 * k2 / 40), p);
        double k4 = slope(t + 4 * h / 5, y + h * (44 * k1 / 45 - 56 * k2 / 15 + 32 * k3 / 9), p);
        double k5 = slope(t + 8 * h / 9,
                          y + h * (19372 * k1 / 6561 - 25360 * k2 / 2187 + 64448 * k3 / 6561 - 212 * k4 / 729), p);
        double k6 = slope(
            t + h, y + h * (9017 * k1 / 3168 - 355 * k2 / 33 + 46732 * k3 / 5247 + 49 * k4 / 176 - 5103 * k5 / 18656), p);
        double next =
            y + h * (35 * k1 / 384 + 500 * k3 / 1113 + 125 * k4 / 192 - 2187 * k5 / 6784 + 11 * k6 / 84);
        double k7 = slope(t + h, next, p);
        double error = fabs(h * (71 * k1 / 57600 - 71 * k3 / 16695 + 71 * k4 / 1920 - 17253 * k5 / 339200 +
                                 22 * k6 / 525 - k7 / 40));
        if (error <= tolerance) {
            t += h;
            y = next;
            count++;
        }
        double factor = 0.9 * pow(tolerance / (error + 1e-300), 0.2);
        h *= fmin(5, fmax(0.2, factor));
    }
    *result = y;
    *steps = count;
}
