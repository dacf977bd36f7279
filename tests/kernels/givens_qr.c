/* R factor by Givens rotations in place; rotations of entries that are exactly zero are skipped. */
#include <math.h>

void givens_qr(int m, int n, double *a) {
    for (int j = 0; j < n; j++)
        for (int i = m - 1; i > j; i--) {
            double x = a[(i - 1) * n + j], y = a[i * n + j];
            if (y == 0) continue;
            double r = hypot(x, y), c = x / r, s = y / r;
            for (int k = j; k < n; k++) {
                double u = a[(i - 1) * n + k], v = a[i * n + k];
                a[(i - 1) * n + k] = c * u + s * v;
                a[i * n + k] = c * v - s * u;
            }
        }
}
