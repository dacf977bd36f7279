/* Records of numbers, a short and a pointer, sorted by insertion twice: so many numbers at known places in one object
   that they cannot all be told apart. */
#include <stdlib.h>

enum { COUNT = 6 };
struct record {
    double v;
    short k;
    double f, d;
    double *p;
    double a[6];
};

static void sort(struct record *r, int by) {
    for (int i = 1; i < COUNT; i++) {
        struct record held = r[i];
        int j = i;
        for (; j > 0 && (by ? r[j - 1].f > held.f : r[j - 1].v < held.v); j--) r[j] = r[j - 1];
        r[j] = held;
    }
}

void k(int n, const double *x, double *y) {
    struct record *r = malloc(COUNT * sizeof *r);
    for (int i = 0; i < COUNT; i++)
        r[i] = (struct record){.v = x[i],
                               .k = i,
                               .f = x[i] * x[n - 1],
                               .d = 0.5 * x[i],
                               .p = &y[i],
                               .a = {0.3, x[i] - 1, 2 * x[i], x[i] * x[i], 1, x[0]}};
    for (int i = 0; i < n; i++) y[i] = 0.25 * x[i];
    sort(r, 1);
    r[1].v *= *r[2].p;
    sort(r, 0);
    for (int i = 0; i < COUNT; i++) y[i] += r[i].v * r[i].k + r[i].f * r[i].a[1] * r[i].a[i] + r[i].d * *r[i].p;
    free(r);
}
