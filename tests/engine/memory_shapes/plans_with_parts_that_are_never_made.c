// A plan with parts that are never made: null members, which are passed on from function to function.

#include <stdlib.h>
#include <string.h>
struct plan {
    int n;
    double *work, *factors;
    struct plan *half;
};
static struct plan *make(int n) {
    struct plan *p = malloc(sizeof *p);
    p->n = n;
    p->work = malloc(n * sizeof(double));
    p->factors = NULL;
    p->half = NULL;
    return p;
}
static void scale(int m, double *to, const double *from, const double *factors) {
    if (m > 2) {
        scale(m / 2, to, from, factors);
        scale(m - m / 2, to + m / 2, from + m / 2, factors ? factors + m / 2 : NULL);
    } else
        for (int i = 0; i < m; i++) to[i] = factors ? from[i] * factors[i] : from[i] * from[i];
}
static void halves(int m, const double *x, double *y, const double *factors, const struct plan *p) {
    if (m > 3) {
        halves(m / 2, x, y, factors, p);
        halves(m - m / 2, x + m / 2, y + m / 2, factors, p);
        return;
    }
    scale(m, p->work, x, factors);
    for (int i = 0; i < m; i++) y[i] += p->work[i] * x[i];
    if (p->half) scale(m, p->work, y, p->half->factors + 1);
}
void k(int n, const double *x, double *y) {
    struct plan *p = make(n);
    memset(y, 0, n * sizeof(double));
    halves(n, x, y, p->factors, p);
    scale(n, p->work, y, x);
    for (int i = 0; i < n; i++) y[i] += p->work[i];
    free(p->work), free(p);
}
