#include <math.h>
#include <stdlib.h>
#include <string.h>
void pathfinder(int rows, int cols, const double *wall, double *r) {
    double *a = malloc(sizeof(double) * cols), *b = malloc(sizeof(double) * cols);
    memcpy(a, wall, sizeof(double) * cols);
    for (int i = 1; i < rows; i++) {
#pragma omp parallel for
        for (int x = 0; x < cols; x++) {
            double v = a[x];
            if (x > 0 && a[x - 1] < v) v = a[x - 1];
            if (x < cols - 1 && a[x + 1] < v) v = a[x + 1];
            b[x] = v + wall[i * cols + x];
        }
        double *s = a;
        a = b;
        b = s;
    }
    memcpy(r, a, sizeof(double) * cols);
    free(a);
    free(b);
}
