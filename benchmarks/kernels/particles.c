/* Charged particles, each a record: they drift in a field, and the energy is summed. */
#include <math.h>

struct particle {
    double x, y, z, vx, vy, vz, mass, charge;
};

double particles(int n, int steps, double dt, struct particle *p) {
    double energy = 0;
    for (int s = 0; s < steps; s++)
        for (int i = 0; i < n; i++) {
            double r2 = p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z + 0.1;
            double f = -p[i].charge / (p[i].mass * r2 * sqrt(r2));
            p[i].vx += dt * f * p[i].x;
            p[i].vy += dt * f * p[i].y;
            p[i].vz += dt * f * p[i].z;
            p[i].x += dt * p[i].vx;
            p[i].y += dt * p[i].vy;
            p[i].z += dt * p[i].vz;
        }
    for (int i = 0; i < n; i++) energy += 0.5 * p[i].mass * (p[i].vx * p[i].vx + p[i].vy * p[i].vy + p[i].vz * p[i].vz);
    return energy;
}
