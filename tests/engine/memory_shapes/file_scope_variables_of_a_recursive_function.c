// File-scope variables of a recursive function.
#include <string.h>

static double total;
static double memo[32];
static int have[32];
static double f(int n, double x) {
    total += x;
    if (n < 2) return x;
    if (have[n]) return memo[n];
    have[n] = 1;
    return memo[n] = f(n - 1, x) * 0.5 + f(n - 2, x) * x;
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        memset(have, 0, sizeof have);
        y[i] = f(6, x[i]) + total;
    }
}
