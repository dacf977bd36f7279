// Records with pointers, in memory that grows.
#include <stdlib.h>

struct S {
    double v;
    int k;
    struct S *next;
};
void k(int n, const double *x, double *y) {
    struct S *a = 0;
    int cap = 0, m = 0;
    for (int i = 0; i < n; i++) {
        if (m == cap) {
            cap = cap ? 2 * cap : 1;
            a = realloc(a, cap * sizeof *a);
        }
        a[m].v = x[i] * x[i];
        a[m].k = i;
        a[m].next = 0;
        m++;
    }
    for (int i = 0; i < n; i++) a[i].next = &a[(i + 1) % n];
    for (int i = 0; i < n; i++) y[i] = a[i].v * a[i].k + a[i].next->v;
    free(a);
}
