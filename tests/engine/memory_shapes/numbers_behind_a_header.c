// Records with bit fields, whose last member is an array that is moved and grows.
#include <stdlib.h>
#include <string.h>

struct vector {
    int n;
    unsigned flag : 3, kind : 5;
    double scale, v[];
};
static struct vector *make(int n, double scale) {
    struct vector *p = malloc(sizeof *p + n * sizeof(double));
    p->n = n;
    p->flag = 5;
    p->kind = n % 31;
    p->scale = scale;
    return p;
}
void k(int n, const double *x, double *y) {
    struct vector *v = make(n, x[1]), *w = make(2 * n, x[0]);
    for (int i = 0; i < n; i++) v->v[i] = x[i] * v->scale * (v->flag + v->kind);
    memcpy(w->v, v->v, n * sizeof(double));
    memmove(w->v + 2, w->v, n * sizeof(double));
    memmove(w->v, w->v + 1, n * sizeof(double));
    v = realloc(v, sizeof *v + (n + 4) * sizeof(double));
    v->v[n] = 2 * v->v[n - 1];
    for (int i = 0; i < n; i++) y[i] = w->v[i] * w->scale + v->v[i + 1];
    free(v);
    free(w);
}
