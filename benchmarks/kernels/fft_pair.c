// The discrete Fourier transform of n = 2^k complex numbers and back, in place: bit reversal, then halves, recursively.
#include <math.h>

static void swap(double *a, double *b) {
    double t = *a;
    *a = *b;
    *b = t;
}

static void reverse_bits(double *z, int n) {
    for (int i = 0, j = 0; i < n; i++) {
        if (j > i) {
            swap(&z[2 * i], &z[2 * j]);
            swap(&z[2 * i + 1], &z[2 * j + 1]);
        }
        int bit = n >> 1;
        while (bit > 0 && (j & bit)) {
            j ^= bit;
            bit >>= 1;
        }
        j |= bit;
    }
}

static void halves(double *z, int n, double sign) {
    if (n == 1) return;
    int half = n / 2;
    halves(z, half, sign);
    halves(z + n, half, sign);
    double step = 2 * M_PI / n, alpha = -2 * sin(step / 2) * sin(step / 2), beta = sign * sin(step), wr = 1, wi = 0;
    for (int i = 0; i < half; i++) {
        double *a = z + 2 * i, *b = z + 2 * (i + half);
        double re = b[0] * wr - b[1] * wi, im = b[0] * wi + b[1] * wr;
        b[0] = a[0] - re;
        b[1] = a[1] - im;
        a[0] += re;
        a[1] += im;
        double w = wr;
        wr += wr * alpha - wi * beta;
        wi += wi * alpha + w * beta;
    }
}

void fft_pair(int n, double *z) {
    reverse_bits(z, n);
    halves(z, n, -1);
    reverse_bits(z, n);
    halves(z, n, 1);
    for (int i = 0; i < 2 * n; i++) z[i] /= n;
}
