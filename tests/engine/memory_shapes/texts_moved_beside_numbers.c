// Characters moved to and from places that nobody knows, in records with numbers and pointers.
#include <stdlib.h>
#include <string.h>

typedef struct {
    double v;
    char *name;
    char text[16];
} record;

void k(int n, const double *x, double *y) {
    record *r = malloc(n * sizeof(record)), *q = malloc(n * sizeof(record));
    for (int i = 0; i < n; i++) {
        r[i].v = x[i] * x[i];
        r[i].name = r[i].text;
        memset(r[i].text, 'a' + i, 15);
        r[i].text[15] = 0;
    }
    for (int i = 0; i < n; i++) memmove(r[i].name + i % 3, r[(i * 5) % n].name + i % 4, 1 + i % 7);
    for (int i = 0; i < n; i++) {
        q[i] = r[n - 1 - i];
        q[i].name = r[i].name;
    }
    for (int i = 0; i < n; i++) y[i] = q[i].v * r[i].v * (q[i].name[1] > 'c' ? x[0] : 2);
    free(q), free(r);
}
