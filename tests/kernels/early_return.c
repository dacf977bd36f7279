/* Returns from inside a loop when the running product passes a bound, with a different formula on each way out. */
#include <math.h>

double early_return(int n, double bound, const double *x) {
    double product = 1;
    for (int i = 0; i < n; i++) {
        if (x[i] < 0) return sin(product) * x[i];
        product *= x[i];
        if (product > bound) return product / bound + i;
    }
    return log(product);
}
