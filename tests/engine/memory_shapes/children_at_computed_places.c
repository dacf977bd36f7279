/* Nodes whose children are chosen by remainders, tables and letters: at any place in the node, as far as is told. */
#include <stdlib.h>

struct node {
    struct node *child[4];
    double sum;
    int count;
};

static const unsigned char turned[] = {2, 0, 3, 1};

static struct node *below(struct node *at, int place) {
    if (!at->child[place]) at->child[place] = calloc(1, sizeof *at);
    return at->child[place];
}

static double total(const struct node *at, double weight) {
    double found = at->sum * weight * at->count;
    for (int i = 0; i < 4; i++)
        if (at->child[i]) found += total(at->child[i], 0.7 * weight + at->sum);
    return found;
}

static void drop(struct node *at) {
    for (int i = 0; i < 4; i++)
        if (at->child[i]) drop(at->child[i]);
    free(at);
}

void k(int n, const double *x, double *y) {
    static const char *const words[] = {"abc", "b", "cad"};
    struct node *root = calloc(1, sizeof *root);
    for (int i = 0; i < n; i++) {
        struct node *at = root;
        for (int key = 5 * i + 1; key; key /= 3) at = below(at, key % 3);
        at->sum += x[i];
        at = below(root, turned[i & 3]);
        for (const char *letter = words[i % 3]; *letter; letter++) at = below(at, *letter - 'a');
        at->sum += x[i] * x[i];
        at->count++;
        y[i] = total(root, 1 + x[i]);
    }
    drop(root);
}
