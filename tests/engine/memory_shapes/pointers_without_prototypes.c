// Functions that are called through pointers which say nothing of their parameters, as C before 2023 has them.
struct shape {
    void (*area)();
    double (*weight)();
    int count;
};

static void square(double *y, const double *x, int n) { y[0] = x[0] * x[0] * n; }
static void product(double *y, const double *x, int n) { y[0] = x[0] * x[1] + n; }
static double half(double a) { return 0.5 * a * a; }

static void measure(double *y, const double *x, const struct shape *s) {
    (*s->area)(y, x, s->count);
    y[0] += s->weight(x[1]);
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i++) {
        struct shape s = {i % 2 ? square : product, half, i + 1};
        measure(y + i, x + i, &s);
    }
    y[n - 1] = x[0] * x[n - 1];
}
