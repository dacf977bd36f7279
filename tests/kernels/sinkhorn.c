/* Entropic optimal transport cost by Sinkhorn scaling: exponentials of a matrix, alternating sums. */
#include <math.h>

double sinkhorn(int n, int m, int sweeps, const double *cost, const double *a, const double *b, double *k, double *u,
                double *v) {
    for (int i = 0; i < n * m; i++) k[i] = exp(-cost[i] / 0.5);
    for (int j = 0; j < m; j++) v[j] = 1;
    for (int s = 0; s < sweeps; s++) {
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = 0; j < m; j++) sum += k[i * m + j] * v[j];
            u[i] = a[i] / sum;
        }
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int i = 0; i < n; i++) sum += k[i * m + j] * u[i];
            v[j] = b[j] / sum;
        }
    }
    double total = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) total += u[i] * k[i * m + j] * v[j] * cost[i * m + j];
    return total;
}
