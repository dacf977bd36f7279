// Expression trees: a node holds a number or pointers in one place. They are cloned, and moved in an array that grows.
#include <stdlib.h>
#include <string.h>

enum kind { CONSTANT, SUM, PRODUCT };
struct node {
    enum kind kind;
    union {
        double value;
        struct node *left;
    } first;
    struct node *right;
};
static struct node *clone(const struct node *from) {
    struct node *to = malloc(sizeof *to);
    memcpy(to, from, sizeof *to);
    if (from->kind != CONSTANT) {
        to->first.left = clone(from->first.left);
        to->right = clone(from->right);
    }
    return to;
}
static double eval(const struct node *t) {
    if (t->kind == CONSTANT) return t->first.value * t->first.value;
    double a = eval(t->first.left), b = eval(t->right);
    return t->kind == SUM ? a + b : a * b;
}
static void release(struct node *t) {
    if (t->kind != CONSTANT) {
        release(t->first.left);
        release(t->right);
    }
    free(t);
}
void k(int n, const double *x, double *y) {
    struct node *pool = malloc(2 * sizeof *pool);
    int room = 2, used = 0;
    for (int i = 0; i < n; i++) {
        if (used == room) {
            struct node *more = malloc(2 * room * sizeof *more);
            memcpy(more, pool, used * sizeof *more);
            free(pool);
            pool = more;
            room *= 2;
        }
        pool[used].kind = CONSTANT;
        pool[used++].first.value = x[i] + i;
    }
    struct node *root = clone(&pool[0]);
    for (int i = 1; i < n; i++) {
        struct node *top = malloc(sizeof *top);
        top->kind = i % 2 ? SUM : PRODUCT;
        top->first.left = root;
        top->right = clone(&pool[i]);
        root = top;
    }
    free(pool);
    struct node *twin = clone(root);
    release(root);
    for (int i = 0; i < n; i++) y[i] = eval(twin) * x[i];
    release(twin);
}
