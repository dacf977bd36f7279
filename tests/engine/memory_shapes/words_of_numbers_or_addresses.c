#include <stdint.h>
#include <string.h>

static uint64_t bits(double number) {
    uint64_t word;
    memcpy(&word, &number, 8);
    return word;
}
static double number(uint64_t word) {
    double found;
    memcpy(&found, &word, 8);
    return found;
}

/* Odd words are addresses, even ones numbers: by a branch, by a choice, with numbers that are constants, and
   copied on. */
static double pairs(int n, const double *x, double *a) {
    uint64_t by_branch[12], by_choice[12], constant[12], copied[12];
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        double scaled = x[i % n] * i;
        if (i % 2)
            by_branch[i] = (uint64_t)&a[i % n];
        else
            memcpy(&by_branch[i], &scaled, 8);
        by_choice[i] = i % 2 ? (uint64_t)&a[i % n] : bits(scaled * scaled);
        constant[i] = i % 2 ? (uint64_t)&a[i % n] : bits(0.5 * i);
    }
    for (int i = 0; i < 12; i += 4) constant[i] = bits(x[i % n]);
    for (int i = 0; i < 12; i++) copied[(i + 2) % 12] = by_choice[i];
    for (int i = 0; i < 12; i++) {
        if (i % 2)
            sum += *(double *)by_branch[i] * *(double *)copied[i] + *(double *)constant[i] * i;
        else
            sum += number(by_branch[i]) * number(by_branch[i]) + number(copied[i]) * number(constant[i]) * x[1];
    }
    return sum;
}

void k(int n, const double *x, double *y) {
    double a[16];
    for (int i = 0; i < n; i++) a[i] = x[i] * x[(i + 1) % n];
    for (int i = 0; i < n; i++) y[i] = pairs(n - i % 2, x, a) * x[i];
}
