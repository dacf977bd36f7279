// Records of two precisions, copied.
#include <stdlib.h>
#include <string.h>

struct S {
    double v;
    float f;
    int k;
    float g;
    short h;
};
void k(int n, const double *x, double *y) {
    struct S *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    for (int i = 0; i < n; i++) {
        a[i].v = x[i];
        a[i].f = x[i] * x[i];
        a[i].k = i;
        a[i].g = 2 * x[i];
        a[i].h = i;
    }
    memcpy(b, a, n * sizeof *a);
    for (int i = 0; i < n; i++) y[i] = b[i].v * b[i].f + b[i].g * b[i].k + a[i].v * a[i].h;
    free(a);
    free(b);
}
