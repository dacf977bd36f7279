/* Piecewise linear interpolation, the piece found by binary search, ends extended. */
void interpolate(int n, int m, const double *x, const double *y, const double *at, double *out) {
    for (int e = 0; e < m; e++) {
        int lo = 0, hi = n - 1;
        while (hi - lo > 1) {
            int mid = (lo + hi) / 2;
            if (x[mid] <= at[e])
                lo = mid;
            else
                hi = mid;
        }
        double t = (at[e] - x[lo]) / (x[hi] - x[lo]);
        out[e] = (1 - t) * y[lo] + t * y[hi];
    }
}
