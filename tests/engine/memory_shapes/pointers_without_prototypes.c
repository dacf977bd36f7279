// Functions that are called through pointers which say nothing of their parameters, as C before 2023 has them, and some
// that are called before they are declared, with 0 for a null pointer and integers of other widths.
#include <stdlib.h>
int in_place();
struct shape {
    void (*area)();
    void (*put)();
    double (*weight)();
    int count;
};

static void square(double *y, const double *x, int n) { y[0] = x[0] * x[0] * n; }
static void product(double *y, const double *x, int n) { y[0] = x[0] * x[1] + n; }
static void put(double *y, double *other, long n) { *(other ? other : y) *= n; }
static double half(double a) { return 0.5 * a * a; }

static void measure(double *y, const double *x, const struct shape *s) {
    (*s->area)(y, x, s->count);
    y[0] += s->weight(x[1]);
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i++) {
        struct shape s = {i % 2 ? square : product, put, half, i + 1};
        measure(y + i, x + i, &s);
        s.put(y + i, 0, 2);
    }
    y[n - 1] = x[0] * x[n - 1];
    if (in_place(y, 0, sizeof(struct shape) / 16) + in_place(y + 1, 0, 2) != 4) y[0] = 0;
}
int in_place(double *y, double *cache, int n) {
    double *own = NULL;
    if (cache == NULL) cache = own = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) cache[i] = y[0] * y[0] * (i + 1);
    y[0] = cache[n - 1];
    if (own != NULL) free(own);
    return n;
}
