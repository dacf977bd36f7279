// Pointers and numbers in one place.
#include <stdlib.h>

union W {
    double d;
    double *p;
};
void k(int n, const double *x, double *y) {
    union W *w = malloc(n * sizeof *w);
    double *b = malloc(n * 8);
    for (int i = 0; i < n; i++) {
        b[i] = x[i] * x[i];
        w[i].p = &b[n - 1 - i];
    }
    for (int i = 0; i < n; i++) {
        double v = *w[i].p;
        w[i].d = v * v;
    }
    for (int i = 0; i < n; i++) y[i] = w[i].d;
    free(w);
    free(b);
}
