/* memcpy between buffers, memmove that overlaps itself (a delay line), memset to zero, and what they carry. */
#include <string.h>

void memory_moves(int n, const double *x, double *line, double *y) {
    memset(line, 0, n * sizeof *line);
    for (int t = 0; t < n; t++) {
        memmove(line + 1, line, (n - 1) * sizeof *line);
        line[0] = x[t] * x[t] + 0.3 * line[n / 2];
    }
    memcpy(y, line, n * sizeof *y);
    for (int i = 0; i < n; i++) y[i] *= 1 + y[i];
}
