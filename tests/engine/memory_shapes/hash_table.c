// Hash table.
#include <stdlib.h>

struct E {
    int key;
    double v;
    struct E *next;
};
struct H {
    struct E *b[4];
    int n;
};
static double *get(struct H *h, int key) {
    struct E *e;
    for (e = h->b[key & 3]; e; e = e->next)
        if (e->key == key) return &e->v;
    e = calloc(1, sizeof *e);
    e->key = key;
    e->next = h->b[key & 3];
    h->b[key & 3] = e;
    h->n++;
    return &e->v;
}
void k(int n, const double *x, double *y) {
    struct H h = {{0}};
    for (int i = 0; i < 3 * n; i++) *get(&h, (i * 5) % n) += x[i % n] * i;
    for (int i = 0; i < n; i++) {
        double v = *get(&h, i);
        y[i] = v * v + h.n;
    }
    for (int i = 0; i < 4; i++)
        while (h.b[i]) {
            struct E *t = h.b[i]->next;
            free(h.b[i]);
            h.b[i] = t;
        }
}
