/* Flow on a square lattice: the state of every step is kept; the cotangents of a cell's nine numbers are those of its
 * density and velocity, computed once, plus what the numbers hand on themselves. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int opposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
static const double share[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

/* where the numbers that a row's cells pull lie */
static inline void sources(int h, int w, int y, double *grid, double **rows) {
    for (int q = 0; q < 9; q++) rows[q] = grid + (ptrdiff_t)(q * h + y - cy[q]) * w - cx[q];
}

static inline void moments(const double *f, double *rho, double *u, double *v) {
    double density = 0, mx = 0, my = 0;
#pragma clang loop unroll(full)
    for (int q = 0; q < 9; q++) {
        density += f[q];
        mx += cx[q] * f[q];
        my += cy[q] * f[q];
    }
    *rho = density;
    *u = mx / density;
    *v = my / density;
}

static void copy_rim(int h, int w, const double *restrict from, double *restrict to) {
    for (int q = 0; q < 9; q++, from += h * w, to += h * w) {
        memcpy(to, from, w * sizeof *to);
        memcpy(to + (h - 1) * w, from + (h - 1) * w, w * sizeof *to);
        for (int y = 1; y < h - 1; y++) {
            to[y * w] = from[y * w];
            to[y * w + w - 1] = from[y * w + w - 1];
        }
    }
}

static void step(int h, int w, double omega, const bool *solid, double *from, double *to) {
    copy_rim(h, w, from, to);
    for (int y = 1; y < h - 1; y++) {
        double *in[9], *out[9];
        const bool *wall = solid + y * w;
        sources(h, w, y, from, in);
        for (int q = 0; q < 9; q++) out[q] = to + (ptrdiff_t)(q * h + y) * w;
#pragma clang loop vectorize(assume_safety)
        for (ptrdiff_t x = 1; x < w - 1; x++) {
            double f[9], rho, u, v;
#pragma clang loop unroll(full)
            for (int q = 0; q < 9; q++) f[q] = in[q][x];
            moments(f, &rho, &u, &v);
            double rest = 1 - 1.5 * (u * u + v * v);
#pragma clang loop unroll(full)
            for (int q = 0; q < 9; q++) {
                double along = 3 * (cx[q] * u + cy[q] * v);
                double relaxed = f[q] + omega * (share[q] * rho * (rest + along + 0.5 * along * along) - f[q]);
                out[q][x] = wall[x] ? f[opposite[q]] : relaxed;
            }
        }
    }
}

static double step_adjoint(int h, int w, double omega, const bool *solid, double *from, double *to_bar,
                           double *from_bar) {
    double omega_bar = 0;
    memset(from_bar, 0, 9 * (size_t)h * w * sizeof *from_bar);
    copy_rim(h, w, to_bar, from_bar);
    for (int y = 1; y < h - 1; y++) {
        double *in[9], *in_bar[9], *out_bar[9];
        const bool *wall = solid + y * w;
        sources(h, w, y, from, in);
        sources(h, w, y, from_bar, in_bar);
        for (int q = 0; q < 9; q++) out_bar[q] = to_bar + (ptrdiff_t)(q * h + y) * w;
#pragma clang loop vectorize(assume_safety)
        for (ptrdiff_t x = 1; x < w - 1; x++) {
            double f[9], b[9], rho, u, v, rho_bar = 0, u_bar = 0, v_bar = 0, kept = 0;
#pragma clang loop unroll(full)
            for (int q = 0; q < 9; q++) {
                f[q] = in[q][x];
                b[q] = out_bar[q][x];
            }
            moments(f, &rho, &u, &v);
            double rest = 1 - 1.5 * (u * u + v * v);
#pragma clang loop unroll(full)
            for (int q = 0; q < 9; q++) {
                double along = 3 * (cx[q] * u + cy[q] * v), part = share[q] * b[q];
                rho_bar += part * (rest + along + 0.5 * along * along);
                u_bar += part * (cx[q] * (3 + 3 * along) - 3 * u);
                v_bar += part * (cy[q] * (3 + 3 * along) - 3 * v);
                kept += b[q] * f[q];
            }
            omega_bar += wall[x] ? 0 : rho * rho_bar - kept;
            double sum = omega * (rho_bar - u_bar * u - v_bar * v);
#pragma clang loop unroll(full)
            for (int q = 0; q < 9; q++) {
                double moved = (1 - omega) * b[q] + sum + omega * (cx[q] * u_bar + cy[q] * v_bar);
                in_bar[q][x] += wall[x] ? b[opposite[q]] : moved;
            }
        }
    }
    return omega_bar;
}

/* work: 9 h w (2 pairs + 1) numbers */
void lbm_adjoint(int h, int w, int pairs, double omega, const bool *solid, const double *f0, const double *f_final_bar,
                 double *f_bar, double *omega_bar, double *work) {
    size_t size = 9 * (size_t)h * w;
    double *states = work, *other = work + 2 * pairs * size, sum = 0;
    memcpy(states, f0, size * sizeof *states);
    for (int s = 0; s + 1 < 2 * pairs; s++) step(h, w, omega, solid, states + s * size, states + (s + 1) * size);
    memcpy(f_bar, f_final_bar, size * sizeof *f_bar);
    for (int s = 2 * pairs - 1; s > 0; s -= 2) {
        sum += step_adjoint(h, w, omega, solid, states + s * size, f_bar, other);
        sum += step_adjoint(h, w, omega, solid, states + (s - 1) * size, other, f_bar);
    }
    *omega_bar = sum;
}
