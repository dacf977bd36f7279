/* Work space from the heap: a matrix square in malloc'd memory, column sums in calloc'd memory. */
#include <stdlib.h>

void malloc_scratch(int n, const double *a, double *out) {
    double *square = malloc(n * n * sizeof *square);
    double *sum = calloc(n, sizeof *sum);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double v = 0;
            for (int k = 0; k < n; k++) v += a[i * n + k] * a[k * n + j];
            square[i * n + j] = v;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum[j] += square[i * n + j] * square[i * n + j];
    for (int j = 0; j < n; j++) out[j] = sum[j] / n;
    free(sum);
    free(square);
}
