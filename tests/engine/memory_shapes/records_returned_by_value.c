// Records returned by value.

typedef struct {
    double v;
    int n;
} vi;
typedef struct {
    float a, b;
} ff;
typedef struct {
    double a[4];
    int k;
} big;
__attribute__((noinline)) static vi mk(double v, int n) {
    vi r;
    r.v = v * v;
    r.n = n;
    return r;
}
__attribute__((noinline)) static ff mf(float v) {
    ff r;
    r.a = v * v;
    r.b = v;
    return r;
}
__attribute__((noinline)) static big mb(double v) {
    big r;
    for (int i = 0; i < 4; i++) r.a[i] = v * i;
    r.k = 2;
    return r;
}
__attribute__((noinline)) static double use(vi a, ff f, big b) { return a.v * a.n + f.a * f.b + b.a[b.k]; }
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = use(mk(x[i], i), mf(x[i]), mb(x[i]));
}
