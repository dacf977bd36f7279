// Words that are copied.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void k(int n, const double *x, double *y) {
    uint64_t *w = malloc(n * 8);
    for (int i = 0; i < n; i++) memcpy(&w[i], &x[n - 1 - i], 8);
    for (int i = 0; i < n; i++) {
        uint64_t t = w[i];
        double d;
        memcpy(&d, &t, 8);
        y[i] = d * d;
    }
    for (int i = 0; i < n; i++) {
        uint64_t t;
        memcpy(&t, &y[i], 8);
        t &= 0x7fffffffffffffffull;
        memcpy(&y[i], &t, 8);
    }
    free(w);
}
