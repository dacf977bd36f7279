/* Branches that keep a function away from where it has no value: an optimiser may compute both sides and select. */
#include <math.h>

void guarded(int n, const _Bool *use, const double *x, const double *d, double *y) {
    for (int i = 0; i < n; i++) {
        double root = x[i] > 0 ? sqrt(x[i]) : 0;
        double inverse = use[i] ? x[i] / d[i] : 2;
        double power = 0;
        if (x[i] > 0) power = pow(x[i], 1.5);
        double logarithm = x[i] > 0 ? log(x[i]) * x[i] : x[i];
        y[i] = root * 2 + inverse + power * root + logarithm;
    }
}
