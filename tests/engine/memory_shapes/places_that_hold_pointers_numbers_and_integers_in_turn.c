// Places that hold pointers, numbers of any size, and integers, one after the other, with partials that show the bits.
#include <math.h>
#include <stdlib.h>
#include <string.h>

union W {
    double d;
    double *p;
    long l;
};
struct R {
    double before;
    union W w;
};
static double part(const double *b, int n, int at, int size) {
    // A pointer 4 bytes behind the start of a record makes room for a number at `at`.
    char *w = malloc(16 * n + 16);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double *p = &b[n - 1 - i];
        memcpy(w + 16 * i + 4, &p, 8);
    }
    for (int i = 0; i < n; i++) {
        const double *p;
        memcpy(&p, w + 16 * i + 4, 8);
        double v = *p * 1e307;
        float f = *p * 1e30;
        memcpy(w + 16 * i + at, size == 8 ? (void *)&v : (void *)&f, size);
    }
    for (int i = 0; i < n; i++) {
        double v;
        float f;
        memcpy(&v, w + 16 * i + at, 8);
        memcpy(&f, w + 16 * i + at, 4);
        sum += size == 8 ? v * 1e-307 : f * 1e-30;
    }
    free(w);
    return sum;
}
void k(int n, const double *x, double *y) {
    struct R *w = malloc(n * sizeof *w), *other = malloc(n * sizeof *w);
    double *b = malloc(n * 8);
    long bits[3];
    double kept[3] = {0.5, 1.25, 2.0};
    memcpy(bits, kept, sizeof bits);
    for (int i = 0; i < n; i++) b[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) w[(i * 5) % n].w.d = b[i];
    for (int i = 0; i < n; i++) y[i] = sin(w[i].w.d);
    for (int i = 0; i < n; i++) w[(i * 5) % n].w.l = bits[i % 3];
    for (int i = 0; i < n; i++) y[i] += w[i].w.d * x[i];
    for (int i = 0; i < n; i++) w[(i * 5) % n].w.p = &b[i], w[i].before = x[i];
    for (int i = 0; i < n; i++) other[i].w.p = &b[0];
    for (int i = 0; i < n; i++) y[i] += *w[i].w.p * *other[i].w.p;
    for (int i = 0; i < n; i++) w[(i * 5) % n].w.d = b[i] * 1e307;
    memcpy(other, w, n * sizeof *w);
    for (int i = 0; i < n; i++) y[i] += other[i].w.d * 1e-307 * other[i].before;
    for (int i = 0; i < n; i++) other[i].w.p = &b[i];
    for (int i = 0; i < n; i++) y[i] += *other[i].w.p;
    memset(other, 0, n * sizeof *w);
    for (int i = 0; i < n; i++) other[i].w.d += x[i] * 1e307;
    for (int i = 0; i < n; i++) y[i] += other[i].w.d * 1e-307;
    y[0] += part(b, n, 4, 4) + part(b, n, 0, 8) + part(b, n, 8, 4);
    free(b);
    free(other);
    free(w);
}
