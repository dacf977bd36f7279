/* Explicit heat equation with conductivity that depends on the temperature; double buffer in scratch, copied back. */
#include <string.h>

void heat(int n, int steps, double dt, const double *kappa, double *next, double *u) {
    for (int s = 0; s < steps; s++) {
        for (int i = 1; i < n - 1; i++) {
            double right = (1 + kappa[i] * u[i] * u[i]) * (u[i + 1] - u[i]);
            double left = (1 + kappa[i - 1] * u[i - 1] * u[i - 1]) * (u[i] - u[i - 1]);
            next[i] = u[i] + dt * (right - left);
        }
        next[0] = u[0];
        next[n - 1] = u[n - 1];
        memcpy(u, next, n * sizeof *u);
    }
}
