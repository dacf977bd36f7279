/* Records of numbers and pointers change places as indices say, some with themselves. */
#include <math.h>
#include <stdlib.h>

struct record {
    double d, *p, a[2];
};

void k(int n, const double *x, double *y) {
    struct record *r = malloc(n * sizeof *r);
    int from[8];
    for (int i = 0; i < n; i++) {
        struct record made = {x[i], &y[i], {sin(x[i]), x[i] * x[i]}};
        r[i] = made;
        from[i] = i % 3 == 0 ? i : (i * 5 + 1) % n;
        y[i] = 0.1 * x[i];
    }
    for (int i = 0; i < n; i++) r[i] = r[from[i]];
    double t = x[0];
    for (int i = 0; i < n; i++) {
        t = sin(t * r[i].d) + r[i].a[0] * r[i].a[1];
        *r[i].p += t;
    }
    free(r);
}
