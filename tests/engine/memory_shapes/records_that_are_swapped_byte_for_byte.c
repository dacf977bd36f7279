// Records that are swapped byte for byte.
#include <string.h>

static void gswap(void *a, void *b, size_t n) {
    char t[64];
    memcpy(t, a, n);
    memcpy(a, b, n);
    memcpy(b, t, n);
}
struct S {
    double v;
    int k;
    float g;
};
void k(int n, const double *x, double *y) {
    struct S s[8];
    for (int i = 0; i < n; i++) {
        s[i].v = x[i];
        s[i].k = i;
        s[i].g = x[i] * x[i];
    }
    for (int i = 0; i + 1 < n; i += 2) gswap(&s[i], &s[i + 1], sizeof *s);
    for (int i = 0; i < n; i++) y[i] = s[i].v * s[i].k + s[i].g;
}
