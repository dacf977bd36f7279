// Heap of records.

struct E {
    double pri;
    int id;
};
static void sift(struct E *h, int i, int n) {
    for (;;) {
        int c = 2 * i + 1;
        if (c >= n) return;
        if (c + 1 < n && h[c + 1].pri < h[c].pri) c++;
        if (h[i].pri <= h[c].pri) return;
        struct E t = h[i];
        h[i] = h[c];
        h[c] = t;
        i = c;
    }
}
void k(int n, const double *x, double *y) {
    struct E h[16];
    for (int i = 0; i < n; i++) {
        h[i].pri = x[i] * x[i];
        h[i].id = i;
    }
    for (int i = n / 2; i >= 0; i--) sift(h, i, n);
    for (int m = n; m > 0; m--) {
        struct E e = h[0];
        h[0] = h[m - 1];
        sift(h, 0, m - 1);
        y[n - m] = e.pri * (n - m + 1) + e.id;
    }
}
