/* Edges of a graph: gather both ends, scatter a non-linear flux back; several edges meet in one node. */
#include <math.h>

void gather_scatter(int n, int m, const long long *tail, const long long *head, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int e = 0; e < m; e++) {
        double flux = tanh(x[tail[e]] - x[head[e]]) * x[head[e]];
        y[tail[e]] -= flux;
        y[head[e]] += flux;
    }
}
