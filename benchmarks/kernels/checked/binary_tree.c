#include <stdlib.h>
typedef struct T {
    double key, v;
    struct T *l, *r;
} T;
static void drop(T *t) {
    if (!t) return;
    drop(t->l);
    drop(t->r);
    free(t);
}
double k(int n, const double *x) {
    T *root = 0;
    for (int i = 0; i < n; i++) {
        T **at = &root;
        while (*at) at = x[i] < (*at)->key ? &(*at)->l : &(*at)->r;
        T *t = malloc(sizeof *t);
        t->key = x[i];
        t->v = x[i] * x[i];
        t->l = t->r = 0;
        *at = t;
    }
    double s = 0;
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < n; i++) {
            T *t = root;
            while (t && t->key != x[i]) t = x[i] < t->key ? t->l : t->r;
            if (t) s += t->v;
        }
    drop(root);
    return s;
}
