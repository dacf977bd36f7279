// Atomic numbers in memory.
#include <stdatomic.h>
#include <stdlib.h>

static void amax(_Atomic double *p, double v) {
    double o = atomic_load(p);
    while (o < v && !atomic_compare_exchange_weak(p, &o, v));
}
void k(int n, const double *x, double *y) {
    _Atomic double *s = calloc(n, sizeof *s), m;
    atomic_init(&m, -1e9);
    for (int i = 0; i < n; i++) {
        s[(i * i) % n] += x[i];
        atomic_store(&s[i], atomic_load(&s[i]) * 2);
        amax(&m, x[i]);
    }
    double q = atomic_exchange(&s[0], x[1]);
    for (int i = 0; i < n; i++) y[i] = x[i] * s[i] + q * m;
    free(s);
}
