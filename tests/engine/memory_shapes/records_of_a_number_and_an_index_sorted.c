// Records of a number and an index, sorted.
#include <stdlib.h>

struct P {
    double v;
    int i;
};
static int cmp(const void *a, const void *b) {
    double u = ((struct P *)a)->v, v = ((struct P *)b)->v;
    return u < v ? -1 : u > v;
}
void k(int n, const double *x, double *y) {
    struct P *p = malloc(n * sizeof *p);
    for (int i = 0; i < n; i++) {
        p[i].v = x[i] * x[i];
        p[i].i = i;
    }
    qsort(p, n, sizeof *p, cmp);
    for (int i = 0; i < n; i++) y[i] = p[i].v * (i + 1) + x[p[i].i];
    free(p);
}
