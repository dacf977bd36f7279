/* A list of numbers behind its own length, in memory that grows: the length says where a number is stored. */
#include <stdlib.h>

struct list {
    int length, room;
    double items[];
};

static struct list *with(struct list *of, double item) {
    if (!of || of->length == of->room) {
        int room = of ? 2 * of->room : 2, length = of ? of->length : 0;
        of = realloc(of, sizeof *of + room * sizeof(double));
        of->room = room;
        of->length = length;
    }
    of->items[of->length++] = item;
    return of;
}

void k(int n, const double *x, double *y) {
    struct list *all = 0;
    for (int i = 0; i < n; i++) {
        all = with(all, x[i] * x[i]);
        if (x[i] > 1) all = with(all, x[i] * all->items[all->length - 1]);
    }
    for (int i = 0; i < n; i++) y[i] = all->items[i] * all->items[all->length - 1 - i];
    free(all);
}
