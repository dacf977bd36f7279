/* Reads x[i], squares it, overwrites it, and reads it again: the old value is what reverse needs. */
#include <math.h>

double overwrite(int n, double *x) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double v = x[i];
        x[i] = v * v;
        sum += sin(x[i]) * v;
    }
    for (int i = 1; i < n; i++) x[i] = x[i] * x[i - 1] + 0.5;
    return sum;
}
