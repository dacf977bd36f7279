// Functions that are called through pointers which say nothing of their parameters, as C before 2023 has them, and that
// take some of their arguments alone, or return what nobody asks for; and some that are called before they are
// declared, with 0 for a null pointer and integers of other widths.
#include <stdarg.h>
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
static double both(double a, double b) { return a * a * b; }
static int first(double *y) { return y[0] *= y[0], 1; }

static int total(int n, ...) {
    va_list all;
    va_start(all, n);
    int s = 0;
    while (n--) s += va_arg(all, int);
    va_end(all);
    return s;
}
static int count(int n, ...) { return n; }

static void measure(double *y, const double *x, const struct shape *s) {
    (*s->area)(y, x, s->count);
    y[0] += s->weight(x[1], x[0]);
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i++) {
        struct shape s = {i % 3 == 2 ? (void (*)())first : i % 3 ? square : product, put, i % 2 ? both : half, i + 1};
        y[i] = x[i];
        measure(y + i, x + i, &s);
        s.put(y + i, 0, 2);
    }
    int (*counted[])(int, ...) = {total, count};
    for (int i = 0; i + 1 < n; i++) y[i] *= counted[i % 2](3, i, 4, 5);
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
