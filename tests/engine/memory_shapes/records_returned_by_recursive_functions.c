// Records returned by recursive functions.

typedef struct {
    double v;
    int n;
} vi;
typedef struct {
    float a, b;
} ff;
static vi rec(vi a, int d) {
    if (d == 0) return a;
    vi b = rec((vi){a.v * 1.1, a.n + 1}, d - 1);
    vi c = rec(b, d / 2 ? d / 2 - 1 : 0);
    return (vi){b.v * c.v, b.n + c.n};
}
static ff recf(ff a, int d) {
    if (d == 0) return a;
    ff b = recf((ff){a.a * a.b, a.b * 1.1f}, d - 1);
    return (ff){b.b, b.a + 0.1f * a.a};
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        vi r = rec((vi){x[i], 0}, 4);
        ff f = recf((ff){x[i], 0.5}, 3);
        y[i] = r.v * r.n + f.a * f.b;
    }
}
