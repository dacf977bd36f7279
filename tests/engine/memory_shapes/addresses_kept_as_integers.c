/* Addresses lie in arrays of integers from malloc, and are copied from one to the next as integers; at the end one is
   chosen beside another array. Integers that are only counted lie beside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct box {
    long address, count;
};

void k(int n, const double *x, double *y) {
    double *squares = malloc(n * sizeof(double));
    long *from = malloc(n * sizeof(long)), *to = malloc(n * sizeof(long));
    struct box *boxes = malloc(n * sizeof *boxes);
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) {
        const double *place = squares + i;
        memcpy(from + (i * 5 + 1) % n, &place, sizeof place);
    }
    for (int i = 0; i < n; i++) to[(i + 2) % n] = from[i];
    for (int i = 0; i < n; i++) {
        boxes[i].address = to[n - 1 - i];
        boxes[i].count = i;
    }
    for (int i = 0; i < n; i++) boxes[n - 1 - i].count += boxes[i].count;
    for (int i = 0; i < n; i++) {
        const double *chosen = boxes[i].count % 2 ? (const double *)boxes[i].address : x + i;
        y[i] = *chosen * x[0] + boxes[i].count;
    }
    free(squares), free(from), free(to), free(boxes);
}
