/* Layer normalisation of each row with gain and offset. REAL is double unless the build says float. */
#include <tgmath.h>
#ifndef REAL
#define REAL double
#endif

void layer_norm(int m, int n, const REAL *x, const REAL *gain, const REAL *offset, REAL *y) {
    for (int i = 0; i < m; i++) {
        REAL mean = 0, var = 0;
        for (int j = 0; j < n; j++) mean += x[i * n + j];
        mean /= n;
        for (int j = 0; j < n; j++) var += (x[i * n + j] - mean) * (x[i * n + j] - mean);
        REAL scale = 1 / sqrt(var / n + (REAL)1e-5);
        for (int j = 0; j < n; j++) y[i * n + j] = (x[i * n + j] - mean) * scale * gain[j] + offset[j];
    }
}
