// Thread-local variables.

static _Thread_local double acc;
static __thread double buf[16];
static double step(double x) {
    acc += x * x;
    buf[3] = acc;
    return acc;
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = step(x[i]) * buf[3];
}
