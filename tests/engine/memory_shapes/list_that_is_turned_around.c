// List that is turned around.
#include <stdlib.h>

struct N {
    double v;
    struct N *next, *prev;
};
void k(int n, const double *x, double *y) {
    struct N head;
    head.next = head.prev = &head;
    for (int i = 0; i < n; i++) {
        struct N *q = malloc(sizeof *q);
        q->v = x[i] * (i + 1);
        q->prev = head.prev;
        q->next = &head;
        head.prev->next = q;
        head.prev = q;
    }
    struct N *p = head.next;
    while (p != &head) {
        struct N *t = p->next;
        p->next = p->prev;
        p->prev = t;
        p->v *= p->v;
        p = t;
    }
    struct N *t = head.next;
    head.next = head.prev;
    head.prev = t;
    int i = 0;
    for (p = head.next; p != &head; p = p->next) y[i++] = p->v * i;
    p = head.next;
    while (p != &head) {
        t = p->next;
        free(p);
        p = t;
    }
}
