// Loops over the nine numbers of each record, whose pointers and integers stand before and behind them.
#include <stdlib.h>
struct body {
    double (*energy)(const struct body *);
    double turn[9];
    long count;
    const double *at;
};
static double moving(const struct body *b) { return b->turn[0] * b->turn[8] * b->at[0] + b->count; }
static double at_rest(const struct body *b) { return b->turn[4] * b->at[0]; }
static void set(struct body *to, const struct body *from) {
    int left = 9;
    to->energy = from->energy, to->count = from->count, to->at = from->at;
    while (left--) to->turn[left] = from->turn[left];
}
void k(int n, const double *x, double *y) {
    struct body *some = malloc(4 * sizeof *some), b;
    int room = 4;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < 9; j++) b.turn[j] = x[i] * x[j % n];
        b.energy = i % 2 ? moving : at_rest, b.count = i, b.at = x + i;
        if (i == room) {
            struct body *more = malloc(2 * room * sizeof *more);
            for (int j = 0; j < i; j++) set(more + j, some + j);
            free(some);
            some = more, room *= 2;
        }
        set(some + i, &b);
    }
    for (int i = 0; i < n; i++) y[i] = some[n - 1 - i].energy(some + n - 1 - i) * some[i].count;
    free(some);
}
