/* Gauss-Legendre quadrature of exp(-a t) sin(b t) with nodes and weights in constant tables. */
#include <math.h>

static const double node[5] = {0, 0.53846931010568309, -0.53846931010568309, 0.90617984593866399, -0.90617984593866399};
static const double weight[5] = {0.56888888888888889, 0.47862867049936647, 0.47862867049936647, 0.23692688505618909,
                                 0.23692688505618909};

double quadrature(double a, double b, double start, double end) {
    double sum = 0, half = 0.5 * (end - start), mid = 0.5 * (end + start);
    for (int i = 0; i < 5; i++) {
        double t = mid + half * node[i];
        sum += weight[i] * exp(-a * t) * sin(b * t);
    }
    return half * sum;
}
