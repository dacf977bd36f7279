// Records that are swapped by value.
#include <stdlib.h>

typedef struct {
    double m;
    int id;
    double p[3];
    float q;
} body;
static void swap(body *a, body *b) {
    body t = *a;
    *a = *b;
    *b = t;
}
void k(int n, const double *x, double *y) {
    body *b = malloc(n * sizeof *b);
    for (int i = 0; i < n; i++) {
        b[i].m = x[i];
        b[i].id = i;
        b[i].q = 2 * x[i];
        for (int j = 0; j < 3; j++) b[i].p[j] = x[i] * j;
    }
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (b[j].m < b[i].m) swap(&b[i], &b[j]);
    for (int i = 0; i < n; i++) y[i] = b[i].m * (i + 1) + b[i].p[2] * b[(i + 1) % n].p[1] + b[i].id + b[i].q * b[i].q;
    free(b);
}
