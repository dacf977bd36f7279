// File-scope variables that start with the addresses of others, and a constant table of such.

struct cell {
    double v;
    struct cell *left, *right;
    double *extra;
};
static double store[4] = {1, 2, 3, 4};
static struct cell leaf1 = {2.0, 0, 0, store}, leaf2 = {3.0, 0, 0, store + 1};
static struct cell root = {1.0, &leaf1, &leaf2, &store[2]};
static struct cell *const all[] = {&root, &leaf1, &leaf2};

static double sum(const struct cell *c) { return c ? c->v * *c->extra + sum(c->left) * sum(c->right) + 0.5 : 0.7; }

void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        all[i % 3]->v *= x[i];
        *all[i % 3]->extra += x[n - 1 - i] * i;
        store[i % 4] *= x[0];
        y[i] = sum(&root);
    }
}
