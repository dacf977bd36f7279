#include <stdlib.h>
typedef struct {
    double *q, *p, *f;
    int n;
    double dt;
} Sys;
static void force(Sys *s) {
    for (int i = 0; i < s->n; i++) s->f[i] = -s->q[i] + 0.1 * (s->q[(i + 1) % s->n] - s->q[i]);
}
static void step(Sys *s) {
    force(s);
    for (int i = 0; i < s->n; i++) {
        s->p[i] += s->dt * s->f[i];
        s->q[i] += s->dt * s->p[i];
    }
}
double k(int n, const double *x) {
    Sys *s = malloc(sizeof *s);
    s->n = n;
    s->dt = 0.01;
    s->q = malloc(8 * n);
    s->p = calloc(n, 8);
    s->f = malloc(8 * n);
    for (int i = 0; i < n; i++) s->q[i] = x[i];
    for (int t = 0; t < 50; t++) step(s);
    double e = 0;
    for (int i = 0; i < n; i++) e += s->q[i] * s->q[i];
    free(s->q);
    free(s->p);
    free(s->f);
    free(s);
    return e;
}
