// Records that are sorted into classes.
#include <stdlib.h>

typedef struct {
    double r[3];
    double m;
    int type;
    unsigned char flag;
    float q;
} part;
void k(int n, const double *x, double *y) {
    part *p = calloc(n, sizeof *p), *tmp = calloc(n, sizeof *p);
    for (int i = 0; i < n; i++) {
        p[i].r[0] = x[i];
        p[i].r[1] = x[i] * x[i];
        p[i].m = 1 + 0.1 * i;
        p[i].type = i % 2;
        p[i].flag = i > 2;
        p[i].q = x[i];
    }
    int c = 0;
    for (int i = 0; i < n; i++)
        if (p[i].type == 0) tmp[c++] = p[i];
    for (int i = 0; i < n; i++)
        if (p[i].type == 1) tmp[c++] = p[i];
    part *t = p;
    p = tmp;
    tmp = t;
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++)
            if (i != j) y[i] += p[j].m * (p[i].r[0] - p[j].r[0]) * (p[i].r[1] + p[j].r[1]) * (p[j].flag ? p[j].q : 1);
    }
    free(p);
    free(tmp);
}
