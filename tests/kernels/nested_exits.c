/* Nested loops with continue, break out of the inner loop, and a flag that ends the outer one. */
#include <math.h>

void nested_exits(int m, int n, const double *x, double limit, double *y) {
    int done = 0;
    for (int i = 0; i < m && !done; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) {
            double v = x[i * n + j];
            if (v < 0) continue;
            sum += v * v;
            if (sum > limit) break;
            if (v > 2 * limit) {
                done = 1;
                break;
            }
            sum = sum * 1.1 + sin(v);
        }
        y[i] = sum;
    }
}
