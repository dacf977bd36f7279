/* Records of a double and two floats, swapped, copied as an array and sorted by insertion, with indices of 32 bits. */
#include <stdlib.h>
#include <string.h>

struct body {
    double mass;
    float x, y;
};

static void swap(struct body *a, struct body *b) {
    struct body held = *a;
    *a = *b, *b = held;
}

void k(int n, const double *x, double *y) {
    struct body *some = malloc(n * sizeof *some), *sorted = malloc(n * sizeof *sorted);
    for (int i = 0; i < n; i++) some[i] = (struct body){x[i], x[i] * 2, x[i] * x[i]};
    for (int i = 0; i < n / 2; i++) swap(&some[i], &some[n - 1 - i]);
    memcpy(sorted, some, n * sizeof *some);
    for (int i = 1; i < n; i++) {
        struct body held = sorted[i];
        int j = i - 1;
        for (; j >= 0 && sorted[j].mass > held.mass; j--) sorted[j + 1] = sorted[j];
        sorted[j + 1] = held;
    }
    for (int i = 0; i < n; i++) y[i] = sorted[i].mass * sorted[i].x + some[i].y * some[i].mass;
    free(some), free(sorted);
}
