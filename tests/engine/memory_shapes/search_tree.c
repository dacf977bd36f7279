// Search tree.
#include <stdlib.h>

struct T {
    double key, val;
    struct T *l, *r;
};
static struct T *ins(struct T *t, double k, double v) {
    if (!t) {
        t = malloc(sizeof *t);
        t->key = k;
        t->val = v;
        t->l = t->r = 0;
    } else if (k < t->key)
        t->l = ins(t->l, k, v);
    else
        t->r = ins(t->r, k, v);
    return t;
}
static double sum(struct T *t, double s) {
    if (!t) return s;
    s = sum(t->l, s);
    s = s * 0.5 + t->val * t->key;
    return sum(t->r, s);
}
static void del(struct T *t) {
    if (!t) return;
    del(t->l);
    del(t->r);
    free(t);
}
void k(int n, const double *x, double *y) {
    struct T *t = 0;
    for (int i = 0; i < n; i++) t = ins(t, x[i], x[i] * x[i]);
    for (int i = 0; i < n; i++) y[i] = sum(t, x[i]);
    del(t);
}
