// Records with functions that nobody calls, and calls through a pointer that nobody sets.
#include <stdlib.h>

struct vector {
    double *data;
    int n;
    struct table *table;
};
struct table {
    double (*dot)(struct vector *, struct vector *);
    void (*add)(double, struct vector *, struct vector *);
};
struct log {
    int level;
    int (*end)(struct log *);
};

static double dot(struct vector *a, struct vector *b) {
    double s = 0;
    for (int i = 0; i < a->n; i++) s += a->data[i] * b->data[i];
    return s;
}

static void add(double s, struct vector *a, struct vector *b) {
    for (int i = 0; i < a->n; i++) b->data[i] += s * a->data[i];
}

static struct vector *make(double *data, int n) {
    struct vector *v = malloc(sizeof *v);
    v->data = data;
    v->n = n;
    v->table = malloc(sizeof *v->table);
    v->table->dot = dot;
    v->table->add = add;
    return v;
}

void k(int n, double *x, double *y) {
    struct vector **all = malloc(n * sizeof *all);
    struct log **logs = malloc(n * sizeof *logs);
    for (int i = 0; i < n; i++) {
        all[i] = make(x + i, 1);
        logs[i] = malloc(sizeof **logs);
        logs[i]->level = i + 1;
    }
    for (int i = 0; i < n; i++) y[i] = all[i]->table->dot(all[i], all[n - 1 - i]) * x[0];
    for (int i = 0; i < n; i++) {
        if (x[i] > 1e9 && logs[i]->level && logs[i]->end(logs[i])) break;
        free(logs[i]);
        free(all[i]->table);
        free(all[i]);
    }
    free(logs);
    free(all);
}
