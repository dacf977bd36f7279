// Records with pointers, copied and moved.
#include <stdlib.h>
#include <string.h>

struct S {
    double v;
    double *p;
    int k;
    double u;
};
void k(int n, const double *x, double *y) {
    struct S *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    double *w = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) {
        w[i] = x[i] * x[i];
        a[i].v = x[i];
        a[i].p = &w[i];
        a[i].k = i;
        a[i].u = 2 * x[i];
    }
    memcpy(b, a, n * sizeof *a);
    memmove(b + 1, b, (n - 1) * sizeof *b);
    for (int i = 0; i < n; i++) {
        a[i].v = 3;
        *a[i].p *= 2;
    }
    for (int i = 0; i < n; i++) y[i] = b[i].v * *b[i].p + b[i].u * b[i].k + a[i].v;
    free(a);
    free(b);
    free(w);
}
