/* Cholesky factor in place (lower triangle; the upper is cleared). Status 1 + i: pivot i is not positive. */
#include <math.h>

int cholesky(int n, double *a) {
    for (int j = 0; j < n; j++) {
        double pivot = a[j * n + j];
        for (int k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        if (!(pivot > 0)) return 1 + j;
        pivot = sqrt(pivot);
        a[j * n + j] = pivot;
        for (int i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = sum / pivot;
        }
        for (int i = 0; i < j; i++) a[i * n + j] = 0;
    }
    return 0;
}
