/* Nodes of an expression hold a number, the address of one, or a function; the tables that they are made of hold
   addresses of numbers and functions side by side, and constants are folded in place. */
#include <stdlib.h>
#include <string.h>
struct node {
    int kind;
    union {
        double value;
        const double *bound;
        const void *function;
    } u;
    void *parts[1];
};
struct entry {
    const char *name;
    const void *address;
    int arity;
};
static double sum(double a, double b) { return a + b; }
static double product(double a, double b) { return a * b; }
static struct node *make(int kind, const void *address, struct node *a, struct node *b) {
    void *parts[2] = {a, b};
    int size = kind > 1 ? (int)sizeof(void *) * kind : 0;
    struct node *made = malloc(sizeof(struct node) - sizeof(void *) + size);
    memset(made, 0, sizeof(struct node) - sizeof(void *) + size);
    memcpy(made->parts, parts, size);
    made->kind = kind;
    made->u.bound = address;
    return made;
}
static double value(const struct node *n) {
    if (n->kind == 0) return n->u.value;
    if (n->kind == 1) return *n->u.bound;
    double (*function)(double, double) = (double (*)(double, double))n->u.function;
    double given[2];
    for (int i = 0; i < n->kind; i++) given[i] = value(n->parts[i]);
    return function(given[0], given[1]);
}
static void fold(struct node *n) {
    if (n->kind < 2) return;
    int known = 1;
    for (int i = 0; i < n->kind; i++) {
        fold(n->parts[i]);
        known &= ((struct node *)n->parts[i])->kind == 0;
    }
    if (!known) return;
    double folded = value(n);
    n->kind = 0;
    n->u.value = folded;
}
static void drop(struct node *n) {
    for (int i = 0; i < n->kind; i++)
        if (n->kind > 1) drop(n->parts[i]);
    free(n);
}
static struct node *parse(const char **text, const struct entry *entries, int count) {
    char letter = *(*text)++;
    for (int i = 0; i < count; i++) {
        if (entries[i].name[0] != letter) continue;
        struct node *a = entries[i].arity ? parse(text, entries, count) : 0;
        struct node *b = entries[i].arity ? parse(text, entries, count) : 0;
        return make(entries[i].arity ? 2 : 1, entries[i].address, a, b);
    }
    struct node *constant = make(0, 0, 0, 0);
    constant->u.value = letter - '0';
    return constant;
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double a = x[i], b = x[(i + 1) % n];
        struct entry entries[] = {
            {"a", &a, 0}, {"b", &b, 0}, {"+", (const void *)sum, 2}, {"*", (const void *)product, 2}};
        const char *text = i % 2 ? "+*a*b3*a+12" : "*+a*23+b*ab";
        struct node *tree = parse(&text, entries, 4);
        fold(tree);
        y[i] = value(tree);
        drop(tree);
    }
}
