/* Full convolution written with a pointer that walks backwards (negative stride). */
void conv_reverse(int n, int k, const double *x, const double *h, double *y) {
    for (int i = 0; i < n + k - 1; i++) {
        const double *p = x + i;
        double sum = 0;
        for (int j = 0; j < k; j++, p--)
            if (p >= x && p < x + n) sum += *p * h[j];
        y[i] = sum;
    }
}
