// Records in a list that have pointers to numbers, to a function and to the next record, made as a whole.
#include <math.h>
#include <stdlib.h>

struct layer {
    int in, out;
    const double *w, *b;
    double *y;
    double (*f)(double);
    struct layer *next;
};
static double soft(double v) { return log1p(exp(v)); }
static double same(double v) { return v; }
void k(int n, const double *x, double *y) {
    double (*const table[])(double) = {soft, tanh, same};
    struct layer *first = NULL, **tail = &first;
    for (int l = 0; l < 3; l++) {
        struct layer *p = malloc(sizeof *p);
        *p = (struct layer){.in = 2, .out = 2, .w = x + l, .b = x + 4, .f = table[l]};
        p->y = malloc(p->out * sizeof(double));
        *tail = p;
        tail = &p->next;
    }
    const double *in = x;
    for (struct layer *p = first; p; p = p->next) {
        for (int o = 0; o < p->out; o++) {
            double s = p->b[o];
            for (int i = 0; i < p->in; i++) s += p->w[o + i] * in[i];
            p->y[o] = p->f(s);
        }
        in = p->y;
    }
    for (int i = 0; i < n; i++) y[i] = in[i % 2] * x[i];
    while (first) {
        struct layer *next = first->next;
        free(first->y);
        free(first);
        first = next;
    }
}
