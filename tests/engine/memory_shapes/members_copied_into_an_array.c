// Some members of a record, beside numbers of another precision and pointers, are copied into an array of numbers.
#include <stdlib.h>
#include <string.h>

struct body {
    int id;
    double place[2];
    float friction;
    double mass;
    struct body *next;
};
void k(int n, const double *x, double *y) {
    struct body *all = NULL;
    for (int i = 0; i + 1 < n; i += 2) {
        struct body *b = calloc(1, sizeof *b);
        b->id = i;
        memcpy(b->place, x + i, sizeof b->place);
        b->friction = 0.25f;
        b->mass = x[i] * x[i + 1];
        b->next = all;
        all = b;
    }
    for (int i = 0; i < n; i++) y[i] = 0;
    while (all) {
        struct body *next = all->next;
        all->place[1] *= next ? next->mass : 1;
        memcpy(y + all->id, all->place, sizeof all->place);
        y[all->id] += all->mass * all->friction;
        free(all);
        all = next;
    }
}
