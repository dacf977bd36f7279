/* Adaptive Heun/Euler pair for u' = -a u + sin t: a run-time number of steps, some of them rejected. */
#include <math.h>

double adaptive_ode(double a, double u, double end, int *accepted) {
    double t = 0, h = 0.1;
    int count = 0;
    while (t < end) {
        if (t + h > end) h = end - t;
        double k1 = -a * u + sin(t), k2 = -a * (u + h * k1) + sin(t + h);
        double error = fabs(0.5 * h * (k2 - k1));
        if (error < 1e-3) {
            t += h;
            u += 0.5 * h * (k1 + k2);
            count++;
            if (error < 1e-4) h *= 1.5;
        } else {
            h *= 0.5;
        }
    }
    *accepted = count;
    return u;
}
