// Memory pool.
#include <stddef.h>

static char pool[4096];
static size_t used;
static void *get(size_t n) {
    void *p = pool + used;
    used += (n + 15) & ~15ul;
    return p;
}
struct N {
    double v;
    int k;
    struct N *next;
};
void k(int n, const double *x, double *y) {
    used = 0;
    struct N *h = 0;
    double *w = get(n * 8);
    for (int i = 0; i < n; i++) {
        struct N *q = get(sizeof *q);
        q->v = x[i] * x[i];
        q->k = i;
        q->next = h;
        h = q;
        w[i] = x[i];
    }
    int i = 0;
    for (struct N *p = h; p; p = p->next) {
        y[i] = p->v * p->k * w[i];
        i++;
    }
}
