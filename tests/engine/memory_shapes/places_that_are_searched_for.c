/* A mark in front of numbers is searched for, and they are read from behind it; another array may take their place. */
#include <stdlib.h>
#include <string.h>

void k(int n, const double *x, double *y) {
    double *block = malloc((n + 1) * sizeof(double));
    char *mark = (char *)block;
    memset(mark, 0, 8);
    mark[3] = 7;
    for (int i = 0; i < n; i++) block[i + 1] = x[i] * x[i];
    char *found = memchr(mark, 7, 8);
    const double *numbers = x[1] > 100 ? x : (const double *)(found + 5);
    for (int i = 0; i < n; i++) y[i] = numbers[i] * x[i];
    free(block);
}
