#include "orbit.h"
#include <math.h>

/* Where a body is at the time t (days): semi-major axis (au), eccentricity, inclination, ascending node, argument of
   the periapsis, mean anomaly at t = 0 (radians). */
void position(const double elements[6], double t, double r[3]) {
    double a = elements[0], e = elements[1];
    double E = eccentric_anomaly(elements[5] + sqrt(gm_sun / (a * a * a)) * t, e);
    r[0] = a * (cos(E) - e);
    r[1] = a * sqrt(1 - e * e) * sin(E);
    r[2] = 0;
    rotate_z(elements[4], r);
    rotate_x(elements[2], r);
    rotate_z(elements[3], r);
}
