/* Log-sum-exp in one pass: the running maximum and the rescaled sum are carried together. */
#include <math.h>

double log_sum_exp(int n, const double *x) {
    double top = x[0], sum = 1;
    for (int i = 1; i < n; i++) {
        if (x[i] > top) {
            sum = sum * exp(top - x[i]) + 1;
            top = x[i];
        } else {
            sum += exp(x[i] - top);
        }
    }
    return top + log(sum);
}
