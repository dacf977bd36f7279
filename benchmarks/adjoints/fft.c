/* Fast Fourier transform: it is linear and symmetric, so that its adjoint is the transform with angles of the other
 * sign. Sines and cosines are computed once for each length, the first two lengths need none. */
#include <math.h>

static void butterflies(int half, const double *restrict c, const double *restrict s, double *re, double *im) {
    double *other_re = re + half, *other_im = im + half;
#pragma clang loop vectorize(assume_safety)
    for (int k = 0; k < half; k++) {
        double tr = other_re[k] * c[k] - other_im[k] * s[k], ti = other_re[k] * s[k] + other_im[k] * c[k];
        other_re[k] = re[k] - tr;
        other_im[k] = im[k] - ti;
        re[k] += tr;
        im[k] += ti;
    }
}

/* n: a power of two, at least 4; work: n numbers */
void fft_adjoint(int n, const double *re_out_bar, const double *im_out_bar, double *restrict re, double *restrict im,
                 double *work) {
    double *c = work, *s = work + n / 2;
    for (int i = 0, j = 0; i < n; i++) {
        re[i] = re_out_bar[j];
        im[i] = im_out_bar[j];
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
    }
    for (int i = 0; i < n; i += 4) {
        double *a = re + i, *b = im + i;
        double ar = a[0] + a[1], ai = b[0] + b[1], br = a[0] - a[1], bi = b[0] - b[1];
        double cr = a[2] + a[3], ci = b[2] + b[3], dr = a[2] - a[3], di = b[2] - b[3];
        a[0] = ar + cr;
        b[0] = ai + ci;
        a[1] = br - di;
        b[1] = bi + dr;
        a[2] = ar - cr;
        b[2] = ai - ci;
        a[3] = br + di;
        b[3] = bi - dr;
    }
    for (int len = 8; len <= n; len <<= 1) {
        double angle = 2 * 3.14159265358979323846 / len;
        for (int k = 0; k < len / 2; k++) {
            c[k] = cos(angle * k);
            s[k] = sin(angle * k);
        }
        for (int i = 0; i < n; i += len) butterflies(len / 2, c, s, re + i, im + i);
    }
}
