/* 2-D wave equation: leapfrog over three levels in one scratch array, indexed by step modulo three; a trace. */
#include <math.h>

void wave(int n, int steps, const double *speed, double *level, double *trace) {
    int size = n * n;
    for (int i = 0; i < 3 * size; i++) level[i] = 0;
    for (int s = 0; s < steps; s++) {
        double *old = level + (s % 3) * size, *now = level + ((s + 1) % 3) * size, *next = level + ((s + 2) % 3) * size;
        now[(n / 2) * n + n / 2] += sin(0.7 * s);
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) {
                int p = i * n + j;
                double lap = now[p - 1] + now[p + 1] + now[p - n] + now[p + n] - 4 * now[p];
                next[p] = 2 * now[p] - old[p] + speed[p] * speed[p] * lap;
            }
        trace[s] = next[n + 2];
    }
}
