void k(int n, int b, const double *x, double *h) {
    for (int i = 0; i < b; i++) h[i] = 0;
    for (int r = 0; r < 20; r++)
        for (int i = 0; i < n; i++) {
            int j = (int)((x[i] - 0.5) * b);
            if (j < 0) j = 0;
            if (j >= b) j = b - 1;
            h[j] += x[i];
        }
}
