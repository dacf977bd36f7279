/* Lennard-Jones energy and forces in a periodic box, pairs beyond the cutoff skipped. */
#include <math.h>

double lennard_jones(int n, const double *q, double box, double cutoff, double *force) {
    double energy = 0;
    for (int i = 0; i < 3 * n; i++) force[i] = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            double d[3], r2 = 0;
            for (int c = 0; c < 3; c++) {
                d[c] = q[3 * i + c] - q[3 * j + c];
                d[c] -= box * floor(d[c] / box + 0.5);
                r2 += d[c] * d[c];
            }
            if (r2 > cutoff * cutoff) continue;
            double s6 = 1 / (r2 * r2 * r2);
            energy += 4 * s6 * (s6 - 1);
            double f = 24 * s6 * (2 * s6 - 1) / r2;
            for (int c = 0; c < 3; c++) {
                force[3 * i + c] += f * d[c];
                force[3 * j + c] -= f * d[c];
            }
        }
    }
    return energy;
}
