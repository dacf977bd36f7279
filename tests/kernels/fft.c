/* Iterative radix-2 FFT in place on separate real and imaginary arrays: bit reversal, then butterflies. */
#include <math.h>

void fft(int n, double *re, double *im) {
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            double t = re[i];
            re[i] = re[j];
            re[j] = t;
            t = im[i];
            im[i] = im[j];
            im[j] = t;
        }
    }
    for (int len = 2; len <= n; len <<= 1) {
        double angle = -2 * 3.14159265358979323846 / len;
        for (int i = 0; i < n; i += len)
            for (int k = 0; k < len / 2; k++) {
                double c = cos(angle * k), s = sin(angle * k);
                int p = i + k, q = i + k + len / 2;
                double tr = re[q] * c - im[q] * s, ti = re[q] * s + im[q] * c;
                re[q] = re[p] - tr;
                im[q] = im[p] - ti;
                re[p] += tr;
                im[p] += ti;
            }
    }
}
