// List that is kept in order.
#include <stdlib.h>

struct N {
    double v;
    int k;
    struct N *next;
};
void k(int n, const double *x, double *y) {
    struct N *h = 0;
    for (int i = 0; i < n; i++) {
        struct N tmp = {x[i] * x[i], i, 0};
        struct N *q = malloc(sizeof *q);
        *q = tmp;
        struct N **p = &h;
        while (*p && (*p)->v < q->v) p = &(*p)->next;
        q->next = *p;
        *p = q;
    }
    int i = 0;
    for (struct N *p = h; p; p = p->next) {
        y[i] = p->v * (i + 1) + p->k;
        i++;
    }
    while (h) {
        struct N *t = h->next;
        free(h);
        h = t;
    }
}
