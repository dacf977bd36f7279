static void qs(double *a, int lo, int hi) {
    while (lo < hi) {
        double p = a[(lo + hi) / 2];
        int i = lo, j = hi;
        while (i <= j) {
            while (a[i] < p) i++;
            while (a[j] > p) j--;
            if (i <= j) {
                double t = a[i];
                a[i] = a[j];
                a[j] = t;
                i++;
                j--;
            }
        }
        qs(a, lo, j);
        lo = i;
    }
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    qs(y, 0, n - 1);
}
