/* Loops that look for the best of all. */
#include <math.h>

#ifndef REAL
#define REAL double
#endif

/* The nearest of the spheres that a ray meets, in branches; none for some rays. */
REAL rays(int n, int m, const REAL *way, const REAL *spheres) {
    REAL total = 0;
    for (int i = 0; i < n; i++) {
        const REAL *d = way + 2 * i;
        REAL best = 100;
        for (int j = 0; j < m; j++) {
            const REAL *c = spheres + 3 * j;
            REAL along = d[0] * c[0] + d[1] * c[1], inside = along * along - c[0] * c[0] - c[1] * c[1] + c[2] * c[2];
            if (inside > 0) {
                REAL t = along - sqrt(inside);
                if (t > 0 && t < best) best = t;
            }
        }
        total += best < 100 ? best * best : d[0];
    }
    return total;
}

/* Nearest and furthest in one loop, from the last to the first, from numbers that vary as well. */
void ends(int n, int m, const double *x, const double *y, double *low, double *high) {
    for (int i = 0; i < n; i++) {
        double least = low[i], most = high[i];
        for (int j = m - 1; j >= 0; j--) {
            double distance = sqrt((x[i] - y[j]) * (x[i] - y[j]) + j);
            least = distance < least ? distance : least;
            if (distance > most) most = distance;
        }
        low[i] = least;
        high[i] = most * least;
    }
}

/* What is read is written; what is chosen goes on to the next; the one before is used beside the comparison. */
double written(int m, double *y) {
    double best = y[0];
    for (int j = 1; j < m; j++) {
        y[j] += y[j - 1] * y[j];
        if (y[j] * y[0] > best) best = y[j] * y[0];
    }
    return best;
}

double growing(int m, const double *y) {
    double best = y[0];
    for (int j = 1; j < m; j++)
        if (y[j] > 0.1 * best) best = 0.5 * best + y[j] * y[j];
    return best;
}

double gaps(int m, const double *y) {
    double best = y[0], sum = 0;
    for (int j = 1; j < m; j++) {
        sum += best * y[j];
        if (y[j] * y[j] > best) best = y[j] * y[j];
    }
    return sum + best;
}
