// Memory from chunks, each piece aligned by arithmetic on its address, with counters beside the pointers.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
    struct chunk *next;
    size_t used, room;
};
struct matrix {
    int rows, columns;
    double *d;
};
struct item {
    struct item *next;
    double v;
    int id;
};
static void *take(struct chunk **top, size_t n) {
    n = (n + 15) & ~(size_t)15;
    if (!*top || (*top)->used + n > (*top)->room) {
        size_t room = n > 256 ? n : 256;
        struct chunk *c = malloc(sizeof *c + 16 + room);
        c->next = *top;
        c->used = 0;
        c->room = room;
        *top = c;
    }
    void *p = (void *)((((uintptr_t)(*top + 1) + 15) & ~(uintptr_t)15) + (*top)->used);
    (*top)->used += n;
    return p;
}
static struct matrix *make(struct chunk **top, int rows, int columns) {
    struct matrix *m = take(top, sizeof *m);
    m->rows = rows;
    m->columns = columns;
    m->d = take(top, rows * columns * sizeof(double));
    memset(m->d, 0, rows * columns * sizeof(double));
    return m;
}
void k(int n, const double *x, double *y) {
    struct chunk *top = NULL;
    struct item *head = NULL;
    struct matrix *m = make(&top, 3, 3), *s = make(&top, 3, 3);
    for (int i = 0; i < 9; i++) m->d[i] = sin(x[i % n] + i);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int l = 0; l < 3; l++) s->d[i * s->columns + j] += m->d[i * m->columns + l] * m->d[l * m->columns + j];
    for (int i = 0; i < n; i++) {
        struct item *p = take(&top, sizeof *p);
        p->next = head;
        p->v = x[i] * x[i] * s->d[i];
        p->id = i;
        head = p;
    }
    for (struct item *p = head; p; p = p->next) y[p->id] = p->v + (p->next ? p->next->v : 0);
    while (top) {
        struct chunk *next = top->next;
        free(top);
        top = next;
    }
}
