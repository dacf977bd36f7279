/* Bodies with short arrays, an index and a mass in single precision; their positions are copied from an array. */
#include <math.h>

enum { BODIES = 3 };
struct body {
    double at[3], speed[3];
    int id;
    float mass;
    double load;
};

void k(int n, const double *x, double *y) {
    struct body b[BODIES];
    for (int i = 0; i < BODIES; i++) {
        for (int d = 0; d < 3; d++) {
            b[i].at[d] = x[i + d];
            b[i].speed[d] = x[3 + d];
        }
        b[i].id = i, b[i].mass = 1 + 0.5f * i, b[i].load = 0;
    }
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < BODIES; i++)
            for (int j = 0; j < BODIES; j++) {
                double away[3], square = 0.1;
                if (b[i].id == b[j].id) continue;
                for (int d = 0; d < 3; d++) away[d] = b[j].at[d] - b[i].at[d], square += away[d] * away[d];
                double pull = b[j].mass / (square * sqrt(square));
                for (int d = 0; d < 3; d++) b[i].speed[d] += 0.05 * pull * away[d];
                b[i].load += pull;
            }
        for (int i = 0; i < BODIES; i++)
            for (int d = 0; d < 3; d++) b[i].at[d] += 0.05 * b[i].speed[d];
        if (b[0].load > b[1].load) {
            struct body held = b[0];
            b[0] = b[1], b[1] = held;
        }
    }
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int i = 0; i < BODIES; i++)
        for (int d = 0; d < 3; d++)
            y[i] += b[i].mass * b[i].speed[d] + b[i].at[d] * b[i].id, y[3 + d] += b[i].load * b[i].at[d];
}
