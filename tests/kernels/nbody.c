/* Gravitational N-body by velocity Verlet: pair loop over j < i, both bodies updated, state in place. */
#include <math.h>

static void accelerate(int n, const double *mass, const double *q, double *a) {
    for (int i = 0; i < 3 * n; i++) a[i] = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double d[3], r2 = 0.05;
            for (int c = 0; c < 3; c++) {
                d[c] = q[3 * j + c] - q[3 * i + c];
                r2 += d[c] * d[c];
            }
            double w = 1 / (r2 * sqrt(r2));
            for (int c = 0; c < 3; c++) {
                a[3 * i + c] += mass[j] * w * d[c];
                a[3 * j + c] -= mass[i] * w * d[c];
            }
        }
}

void nbody(int n, int steps, double dt, const double *mass, double *a, double *q, double *v) {
    accelerate(n, mass, q, a);
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < 3 * n; i++) {
            v[i] += 0.5 * dt * a[i];
            q[i] += dt * v[i];
        }
        accelerate(n, mass, q, a);
        for (int i = 0; i < 3 * n; i++) v[i] += 0.5 * dt * a[i];
    }
}
