/* N bodies: coordinates apart from each other so that the loop over pairs is vectorised; positions, accelerations and
 * half-step velocities of each step are kept; one adjoint of the forces per step. */
#include <math.h>

static void accelerate(int n, const double *restrict mass, const double *restrict q, double *restrict a) {
    const double *x = q, *y = q + n, *z = q + 2 * n;
    for (int i = 0; i < 3 * n; i++) a[i] = 0;
    for (int i = 0; i < n; i++) {
        double ax = 0, ay = 0, az = 0, m = mass[i];
        for (int j = 0; j < i; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i], r2 = 0.05 + dx * dx + dy * dy + dz * dz;
            double w = 1 / (r2 * sqrt(r2)), wi = m * w, wj = mass[j] * w;
            ax += wj * dx;
            ay += wj * dy;
            az += wj * dz;
            a[j] -= wi * dx;
            a[n + j] -= wi * dy;
            a[2 * n + j] -= wi * dz;
        }
        a[i] += ax;
        a[n + i] += ay;
        a[2 * n + i] += az;
    }
}

static void accelerate_adjoint(int n, const double *restrict mass, const double *restrict q, const double *restrict g,
                               double *restrict mass_bar, double *restrict q_bar) {
    const double *x = q, *y = q + n, *z = q + 2 * n;
    for (int i = 0; i < n; i++) {
        double qx = 0, qy = 0, qz = 0, mi = 0, m = mass[i], gx = g[i], gy = g[n + i], gz = g[2 * n + i];
        for (int j = 0; j < i; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i], r2 = 0.05 + dx * dx + dy * dy + dz * dz;
            double over = 1 / r2, w = over * sqrt(over);
            double own = gx * dx + gy * dy + gz * dz, other = g[j] * dx + g[n + j] * dy + g[2 * n + j] * dz;
            double s = -3 * w * over * (mass[j] * own - m * other), wj = mass[j] * w, wi = m * w;
            double bx = wj * gx - wi * g[j] + s * dx, by = wj * gy - wi * g[n + j] + s * dy;
            double bz = wj * gz - wi * g[2 * n + j] + s * dz;
            mass_bar[j] += w * own;
            mi -= w * other;
            q_bar[j] += bx;
            q_bar[n + j] += by;
            q_bar[2 * n + j] += bz;
            qx -= bx;
            qy -= by;
            qz -= bz;
        }
        mass_bar[i] += mi;
        q_bar[i] += qx;
        q_bar[n + i] += qy;
        q_bar[2 * n + i] += qz;
    }
}

static void transpose(int rows, int cols, const double *from, double *to) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) to[j * rows + i] = from[i * cols + j];
}

/* work: 3 n (3 (steps + 1) + 4) numbers */
void nbody_adjoint(int n, int steps, double dt, const double *mass, const double *q0, const double *v0,
                   const double *q_final_bar, const double *v_final_bar, double *dt_bar, double *mass_bar,
                   double *q0_bar, double *v0_bar, double *work) {
    int size = 3 * n;
    double *q = work, *a = q + size * (steps + 1), *v = a + size * (steps + 1), *now = v + size * (steps + 1);
    double *qb = now + size, *vb = qb + size, *ab = vb + size, sum = 0;
    transpose(n, 3, q0, q);
    transpose(n, 3, v0, now);
    accelerate(n, mass, q, a);
    for (int s = 0; s < steps; s++) {
        double *restrict half = v + s * size, *restrict next = q + (s + 1) * size;
        for (int i = 0; i < size; i++) {
            half[i] = now[i] + 0.5 * dt * a[s * size + i];
            next[i] = q[s * size + i] + dt * half[i];
        }
        accelerate(n, mass, next, a + (s + 1) * size);
        for (int i = 0; i < size; i++) now[i] = half[i] + 0.5 * dt * a[(s + 1) * size + i];
    }
    transpose(n, 3, q_final_bar, qb);
    transpose(n, 3, v_final_bar, vb);
    for (int i = 0; i < n; i++) mass_bar[i] = 0;
    for (int i = 0; i < size; i++) ab[i] = 0;
    for (int s = steps - 1; s >= 0; s--) {
        const double *half = v + s * size, *old = a + s * size, *new = old + size;
        for (int i = 0; i < size; i++) {
            ab[i] += 0.5 * dt * vb[i];
            sum += 0.5 * vb[i] * new[i];
        }
        accelerate_adjoint(n, mass, q + (s + 1) * size, ab, mass_bar, qb);
        for (int i = 0; i < size; i++) {
            vb[i] += dt * qb[i];
            sum += qb[i] * half[i] + 0.5 * vb[i] * old[i];
            ab[i] = 0.5 * dt * vb[i];
        }
    }
    accelerate_adjoint(n, mass, q, ab, mass_bar, qb);
    *dt_bar = sum;
    transpose(3, n, qb, q0_bar);
    transpose(3, n, vb, v0_bar);
}
