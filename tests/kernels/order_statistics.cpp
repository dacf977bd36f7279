// Insertion into a sorted local array through a reference-taking helper: the three smallest values, weighted.
#include <cmath>

namespace {

void exchange(double &a, double &b) {
    double t = a;
    a = b;
    b = t;
}

} // namespace

extern "C" void order_statistics(int n, const double *x, double *smallest) {
    double low[3] = {1e300, 1e300, 1e300};
    for (int i = 0; i < n; i++) {
        if (x[i] >= low[2]) continue;
        low[2] = x[i];
        for (int k = 2; k > 0 && low[k] < low[k - 1]; k--) exchange(low[k], low[k - 1]);
    }
    for (int k = 0; k < 3; k++) smallest[k] = std::exp(0.1 * low[k]) * low[k];
}
