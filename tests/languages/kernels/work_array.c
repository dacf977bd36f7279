/* Numbers, and behind them, wherever that is, the integers by which they are sorted. */
#include <stdlib.h>
#include <string.h>

void ranked(const int *where, int n, const double *x, double *y) {
  double *w = malloc((2 * sizeof(double) + sizeof(int)) * n);
  int *rank = (int *)(w + n + *where);
  memset(w, 0, (2 * sizeof(double) + sizeof(int)) * n);
  memcpy(w, x, n * sizeof(double));
  for (int i = 0; i < n; i++) {
    w[i] *= w[i];
    rank[i] += i;
  }
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++)
      if (x[(unsigned)rank[j] % n] < x[(unsigned)rank[i] % n]) {
        int kept = rank[i];
        rank[i] = rank[j];
        rank[j] = kept;
      }
  for (int i = 0; i < n; i++) y[i] = w[(unsigned)rank[i] % n] * (i + 1) + w[i];
  free(w);
}
