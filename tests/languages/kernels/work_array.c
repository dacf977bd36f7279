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

/* Integers in front, and behind them, wherever that is, numbers that are copied from there to other memory. */
void moved(const int *where, int n, const double *x, double *y) {
  char *block = malloc(1128);
  int *sizes = (int *)block;
  double *w = (double *)(sizes + 4) + *where;
  sizes[0] = where[1];
  sizes[1] = 3 * where[1];
  double *other = malloc(sizes[0] * sizeof(double));
  memcpy(w, x, sizes[0] * sizeof(double));
  for (int t = 0; t < sizes[1] / sizes[0]; t++) {
    for (int i = 0; i < n; i++) w[i] *= w[(i + 1) % sizes[0]];
    memcpy(other, w, sizes[0] * sizeof(double));
  }
  memcpy(y, other, sizes[0] * sizeof(double));
  free(other);
  free(block);
}
