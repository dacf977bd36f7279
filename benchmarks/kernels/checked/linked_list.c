#include <stdlib.h>
typedef struct N {
    double v;
    struct N *next;
} N;
double k(int n, const double *x) {
    N *h = 0;
    for (int i = 0; i < n; i++) {
        N *p = malloc(sizeof *p);
        p->v = x[i];
        p->next = h;
        h = p;
    }
    double s = 0;
    for (int r = 0; r < 50; r++)
        for (N *p = h; p; p = p->next) s += p->v;
    while (h) {
        N *p = h->next;
        free(h);
        h = p;
    }
    return s;
}
