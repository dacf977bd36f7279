/* Heat on a square: grids kept every 32 steps, each segment computed again so that its grids stay in the cache.
 * Interior cotangents are gathered from the next step's; the rim, which keeps its values, sums what it is read for. */
#include <string.h>

enum { SEGMENT = 32 };

static void step(int n, double r, const double *restrict from, double *restrict to) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++) {
            int p = i * n + j;
            to[p] = from[p] + r * (from[p - n] + from[p + n] + from[p - 1] + from[p + 1] - 4 * from[p]);
        }
}

/* work: (33 + steps / 32 + 1 + 2) grids */
void heat2d_adjoint(int n, int steps, double r, const double *u, const double *u_final_bar, double *restrict u_bar,
                    double *r_bar, double *work) {
    int size = n * n, last = n - 1;
    size_t bytes = size * sizeof(double);
    double *now = work, *before = now + size, *grids = before + size, *kept = grids + (SEGMENT + 1) * size;
    steps -= steps % 2; /* an odd last step leaves its result in the other grid */
    for (int s = 0; s <= SEGMENT; s++) memcpy(grids + s * size, u, bytes);
    for (int s = 0; s < steps; s++) {
        if (s % SEGMENT == 0) memcpy(kept + s / SEGMENT * size, grids + s % 2 * size, bytes);
        step(n, r, grids + s % 2 * size, grids + (s + 1) % 2 * size);
    }
    memset(now, 0, 2 * bytes);
    memcpy(u_bar, u_final_bar, bytes);
    for (int i = 1; i < last; i++) memcpy(now + i * n + 1, u_final_bar + i * n + 1, (n - 2) * sizeof(double));
    double sum = 0;
    for (int first = (steps - 1) / SEGMENT * SEGMENT; steps > 0 && first >= 0; first -= SEGMENT) {
        int count = steps - first < SEGMENT ? steps - first : SEGMENT;
        memcpy(grids, kept + first / SEGMENT * size, bytes);
        for (int s = 0; s + 1 < count; s++) step(n, r, grids + s * size, grids + (s + 1) * size);
        for (int s = count - 1; s >= 0; s--) {
            const double *restrict from = grids + s * size, *restrict bar = now;
            double *restrict to = before;
            for (int i = 1; i < last; i++)
                for (int j = 1; j < last; j++) {
                    int p = i * n + j;
                    sum += bar[p] * (from[p - n] + from[p + n] + from[p - 1] + from[p + 1] - 4 * from[p]);
                    to[p] = bar[p] + r * (bar[p - n] + bar[p + n] + bar[p - 1] + bar[p + 1] - 4 * bar[p]);
                }
            for (int j = 1; j < last; j++) {
                u_bar[j] += r * bar[n + j];
                u_bar[last * n + j] += r * bar[(last - 1) * n + j];
            }
            for (int i = 1; i < last; i++) {
                u_bar[i * n] += r * bar[i * n + 1];
                u_bar[i * n + last] += r * bar[i * n + last - 1];
            }
            before = now;
            now = to;
        }
    }
    for (int i = 1; i < last; i++) memcpy(u_bar + i * n + 1, now + i * n + 1, (n - 2) * sizeof(double));
    *r_bar = sum;
}
