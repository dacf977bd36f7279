// Records with bit fields, whose last member is an array that is moved and grows; a block with pointers to its own
// parts, into which as many numbers are copied as it says, and arrays in front of their lengths.
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
struct net {
    int inputs, weights;
    double *weight, *output;
};
struct table {
    double v[8];
    int n;
};
static struct net *net(int n) {
    struct net *p = malloc(sizeof *p + (2 * n + 1) * sizeof(double));
    p->inputs = n;
    p->weights = n + 1;
    p->weight = (double *)(p + 1);
    p->output = p->weight + p->weights;
    for (int i = 0; i < p->weights; i++) p->weight[i] = (double)rand();
    return p;
}
static double sum(const struct net *p) {
    double s = p->weight[p->inputs];
    for (int i = 0; i < p->inputs; i++) s += p->weight[i] * p->output[i];
    return s;
}
static double last(const struct table *t) { return t->v[t->n - 1] * t->v[0]; }
void k(int n, const double *x, double *y) {
    struct vector *v = make(n, x[1]), *w = make(2 * n, x[0]);
    for (int i = 0; i < n; i++) v->v[i] = x[i] * v->scale * (v->flag + v->kind);
    memcpy(w->v, v->v, n * sizeof(double));
    memmove(w->v + 2, w->v, n * sizeof(double));
    memmove(w->v, w->v + 1, n * sizeof(double));
    v = realloc(v, sizeof *v + (n + 4) * sizeof(double));
    v->v[n] = 2 * v->v[n - 1];
    for (int i = 0; i < n; i++) y[i] = w->v[i] * w->scale + v->v[i + 1];
    struct net *p = net(n - 1);
    struct table *t = malloc(sizeof *t);
    t->n = n - 1;
    memcpy(p->weight, x, p->weights * sizeof(double));
    memcpy(p->output, x, p->inputs * sizeof(double));
    memcpy(t->v, x, t->n * sizeof(double));
    y[0] += sum(p) + last(t);
    free(v);
    free(w);
    free(p);
    free(t);
}
