/* Flow on a square lattice (lattice Boltzmann, nine velocities, one relaxation rate): every cell pulls what its
 * neighbours sent, and relaxes towards equilibrium or, where it is solid, sends it back. The rim stays. Two grids in
 * turn, so that `pairs` iterations are twice as many steps. */
#include <stdbool.h>

static const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int opposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
static const double share[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

static void step(int h, int w, double omega, const bool *solid, const double *from, double *to) {
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            double f[9], rho = 0, mx = 0, my = 0;
            for (int q = 0; q < 9; q++) {
                f[q] = from[(q * h + y - cy[q]) * w + x - cx[q]];
                rho += f[q];
                mx += cx[q] * f[q];
                my += cy[q] * f[q];
            }
            double u = mx / rho, v = my / rho, rest = 1 - 1.5 * (u * u + v * v);
            for (int q = 0; q < 9; q++) {
                double along = 3 * (cx[q] * u + cy[q] * v);
                double relaxed = f[q] + omega * (share[q] * rho * (rest + along + 0.5 * along * along) - f[q]);
                to[(q * h + y) * w + x] = solid[y * w + x] ? f[opposite[q]] : relaxed;
            }
        }
}

void lbm(int h, int w, int pairs, double omega, const bool *solid, double *g, double *f) {
    for (int i = 0; i < 9 * h * w; i++) g[i] = f[i];
    for (int s = 0; s < pairs; s++) {
        step(h, w, omega, solid, f, g);
        step(h, w, omega, solid, g, f);
    }
}
