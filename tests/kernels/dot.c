/* Inner product, as the return value. REAL is double unless the build says float. */
#ifndef REAL
#define REAL double
#endif

REAL dot(int n, const REAL *x, const REAL *y) {
    REAL sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}
