#include "orbit.h"
#include <math.h>

/* Kepler's equation, E - e sin E = M, by Newton's method. */
double eccentric_anomaly(double mean, double eccentricity) {
    double E = eccentricity < 0.8 ? mean : 3.14159265358979;
    int i;
    for (i = 0; i < 50; i++) {
        double step = (E - eccentricity * sin(E) - mean) / (1 - eccentricity * cos(E));
        E -= step;
        if (fabs(step) < 1e-14) break;
    }
    return E;
}
