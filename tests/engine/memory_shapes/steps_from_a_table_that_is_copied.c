// Functions in a table that is copied and changed, called in turn: they reach their numbers through a record.

#include <stdlib.h>
#include <string.h>

struct state {
    int turns;
    double *work, *last;
};

static int grow(struct state *s) {
    s->work[0] *= 1.5, s->work[1] += s->last[0];
    return s->work[0] < 3;
}

static int turn(struct state *s) {
    double *old = s->work;
    s->work = s->last, s->last = old, s->turns++;
    return s->work[1] < 2;
}

static int add(struct state *s) {
    s->work[1] += s->last[1] * s->work[0];
    return 0;
}

static int keep(struct state *s) { return s->turns < 2; }

void k(int n, const double *x, double *y) {
    int (*steps[4])(struct state *) = {grow, turn, add, grow};
    if (n > 2) steps[3] = keep;
    struct state *s = malloc(sizeof *s);
    s->turns = 0;
    s->work = malloc(2 * sizeof(double)), s->last = malloc(2 * sizeof(double));
    memcpy(s->work, x, 2 * sizeof(double)), memcpy(s->last, x + 1, 2 * sizeof(double));
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 4 && steps[i](s); i++);
    for (int i = 0; i < n; i++) y[i] = s->work[i % 2] * x[i] + s->last[0] * s->last[1];
    free(s->work), free(s->last), free(s);
}
