/* C <- alpha A B + beta C. REAL is double unless the build says float. */
#ifndef REAL
#define REAL double
#endif

void gemm(int m, int n, int k, REAL alpha, const REAL *a, const REAL *b, REAL beta, REAL *c) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            REAL sum = 0;
            for (int p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = alpha * sum + beta * c[i * n + j];
        }
    }
}
