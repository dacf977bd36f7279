#include <stdlib.h>
typedef struct P {
    double x, v;
    int nb;
    struct P **nbs;
} P;
double k(int n, const double *x) {
    P *p = malloc(n * sizeof *p);
    for (int i = 0; i < n; i++) {
        p[i].x = x[i];
        p[i].v = 0;
        p[i].nb = 6;
        p[i].nbs = malloc(6 * sizeof(P *));
        for (int j = 0; j < 6; j++) p[i].nbs[j] = &p[(i * 7 + j * 13 + 1) % n];
    }
    for (int t = 0; t < 20; t++) {
        for (int i = 0; i < n; i++) {
            double f = 0;
            for (int j = 0; j < p[i].nb; j++) f += p[i].nbs[j]->x - p[i].x;
            p[i].v += 0.01 * f;
        }
        for (int i = 0; i < n; i++) p[i].x += 0.01 * p[i].v;
    }
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += p[i].x * p[i].x;
        free(p[i].nbs);
    }
    free(p);
    return s;
}
