/* Softmax of each row, shifted by the row's maximum. REAL is double unless the build says float. */
#include <tgmath.h>
#ifndef REAL
#define REAL double
#endif

void softmax(int m, int n, const REAL *x, REAL *y) {
    for (int i = 0; i < m; i++) {
        const REAL *row = x + i * n;
        REAL top = row[0], sum = 0;
        for (int j = 1; j < n; j++)
            if (row[j] > top) top = row[j];
        for (int j = 0; j < n; j++) {
            y[i * n + j] = exp(row[j] - top);
            sum += y[i * n + j];
        }
        for (int j = 0; j < n; j++) y[i * n + j] /= sum;
    }
}
