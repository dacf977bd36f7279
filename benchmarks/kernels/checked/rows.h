// A matrix as an array of pointers to its rows.
#include <stdlib.h>

static double **mat(int n, int m) {
    double **a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = malloc(m * sizeof **a);
    return a;
}
static void done(double **a, int n) {
    for (int i = 0; i < n; i++) free(a[i]);
    free(a);
}
