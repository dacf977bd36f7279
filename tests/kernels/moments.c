/* Four outputs of different kinds: mean, variance, the standardised values, and the count above the mean. */
#include <math.h>

void moments(int n, const double *x, double *mean, double *variance, double *z, int *above) {
    double m = 0, v = 0;
    int count = 0;
    for (int i = 0; i < n; i++) m += x[i];
    m /= n;
    for (int i = 0; i < n; i++) v += (x[i] - m) * (x[i] - m);
    v /= n - 1;
    for (int i = 0; i < n; i++) {
        z[i] = (x[i] - m) / sqrt(v);
        count += x[i] > m;
    }
    *mean = m;
    *variance = v;
    *above = count;
}
