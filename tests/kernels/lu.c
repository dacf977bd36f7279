/* LU factors in place without pivoting, then log |det|. */
#include <math.h>

double lu(int n, double *a) {
    double logdet = 0;
    for (int k = 0; k < n; k++) {
        for (int i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
        logdet += log(fabs(a[k * n + k]));
    }
    return logdet;
}
