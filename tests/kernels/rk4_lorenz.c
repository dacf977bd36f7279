/* Fourth-order Runge-Kutta on the Lorenz system: a function inlined four times, local arrays, state in and out. */
static void slope(const double *p, const double *u, double *du) {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
}

void rk4_lorenz(int steps, double dt, const double *p, double *u) {
    double k1[3], k2[3], k3[3], k4[3], t[3];
    for (int s = 0; s < steps; s++) {
        slope(p, u, k1);
        for (int i = 0; i < 3; i++) t[i] = u[i] + 0.5 * dt * k1[i];
        slope(p, t, k2);
        for (int i = 0; i < 3; i++) t[i] = u[i] + 0.5 * dt * k2[i];
        slope(p, t, k3);
        for (int i = 0; i < 3; i++) t[i] = u[i] + dt * k3[i];
        slope(p, t, k4);
        for (int i = 0; i < 3; i++) u[i] += dt / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
}
