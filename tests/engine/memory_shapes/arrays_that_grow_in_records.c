// Arrays that grow, each in a record of a list of them: where a pointer to be resized comes from is not in sight.
#include <stdlib.h>

struct series {
    double *value, *slope;
    size_t length, room;
};
static void append(struct series *s, double value, double slope) {
    if (s->length == s->room) {
        s->room = s->room ? s->room * 3 / 2 + 1 : 2;
        s->value = realloc(s->value, s->room * sizeof *s->value);
        s->slope = realloc(s->slope, s->room * sizeof *s->slope);
    }
    s->value[s->length] = value;
    s->slope[s->length++] = slope;
}
void k(int n, const double *x, double *y) {
    struct series *all = calloc(n, sizeof *all);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) append(&all[i], x[i] * x[j], x[i] - x[j]);
    for (int i = 0; i < n; i++) {
        y[i] = x[i];
        for (size_t j = 0; j < all[i].length; j++) y[i] += all[i].value[j] * all[i].slope[j];
    }
    for (int i = 0; i < n; i++) {
        free(all[i].value);
        free(all[i].slope);
    }
    free(all);
}
