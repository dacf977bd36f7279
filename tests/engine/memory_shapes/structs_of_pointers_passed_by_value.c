// Structs of pointers, passed by value.
#include <stdlib.h>
#include <string.h>

typedef struct {
    double *pos, *vel;
    int n;
    double dt;
} sys;
static sys make(int n) {
    sys s;
    s.pos = malloc(n * 8);
    s.vel = malloc(n * 8);
    s.n = n;
    s.dt = 0.1;
    return s;
}
static void step(sys s) {
    for (int i = 0; i < s.n; i++) {
        s.vel[i] -= s.dt * s.pos[i];
        s.pos[i] += s.dt * s.vel[i];
    }
}
void k(int n, const double *x, double *y) {
    sys s = make(n), *h = malloc(2 * sizeof *h);
    for (int i = 0; i < n; i++) {
        s.pos[i] = x[i];
        s.vel[i] = 1;
    }
    memcpy(&h[0], &s, sizeof s);
    h[1] = h[0];
    h[1].dt = 0.2;
    for (int t = 0; t < 5; t++) step(h[t & 1]);
    memcpy(y, h[1].pos, n * 8);
    free(s.pos);
    free(s.vel);
    free(h);
}
