#include "orbit.h"
#include <math.h>

static void turn(double angle, double *p, double *q) {
    double c = cos(angle), s = sin(angle), first = *p;
    *p = c * first - s * *q;
    *q = s * first + c * *q;
}

void rotate_x(double angle, double v[3]) { turn(angle, &v[1], &v[2]); }
void rotate_z(double angle, double v[3]) { turn(angle, &v[0], &v[1]); }
