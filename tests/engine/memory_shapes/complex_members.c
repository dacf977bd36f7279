// Complex members.
#include <complex.h>

typedef struct {
    double complex z;
    int k;
    float complex w;
} zc;
void k(int n, const double *x, double *y) {
    zc a[8];
    for (int i = 0; i < n; i++) {
        a[i].z = x[i] + x[(i + 1) % n] * I;
        a[i].k = i;
        a[i].w = x[i] * (1 + 2 * I);
    }
    for (int i = 0; i < n / 2; i++) {
        zc t = a[i];
        a[i] = a[n - 1 - i];
        a[n - 1 - i] = t;
    }
    for (int i = 0; i < n; i++) y[i] = creal(a[i].z * a[i].z) * a[i].k + cimag(a[i].z) + cimagf(a[i].w * a[i].w);
}
