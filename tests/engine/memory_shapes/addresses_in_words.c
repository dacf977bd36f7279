// Addresses that travel as integers: of constants, of parameters, and of what the kernel allocates.
#include <stdlib.h>
#include <string.h>

typedef unsigned long long word;
static const double fixed[4] = {1, 2, 3, 4};

void k(int n, const double *x, double *y) {
    double *squares = malloc(n * sizeof *squares);
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i];
    word where[3] = {(word)fixed, (word)x, (word)squares}, copy[3];
    memcpy(copy, where, sizeof where);
    for (int i = 0; i < n; i++) {
        const double *p = (const double *)(copy[i % 3] + 8 * (i % 2));
        y[i] = p[i % 3] * x[i];
    }
    free(squares);
}
