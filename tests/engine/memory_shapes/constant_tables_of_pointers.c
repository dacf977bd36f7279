// Constant tables beside the kernel's numbers: pointers lead to either, and to tables of tables with names in them.

struct rule {
    const char *name;
    const struct rule *next;
    int order;
    double weight;
    const double *nodes;
};

static const double first[4] = {0.2, 0.4, 0.7, 0.9}, second[6] = {9, 0.3, 0.5, 0.1, 0.8, 8};
static const double *const plain[2] = {first, second + 1};
static const unsigned long bits[4] = {0x3ff0000000000000, 0x4000000000000000, 0x3fe0000000000000, 0x3fd0000000000000};
static const struct rule low = {"low", 0, 4, 3.0, second + 1};
static const struct rule high = {"high", &low, 3, 2.0, first};

void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        struct rule own = {"own", &high, 4, x[i], x};
        const struct rule *rule = i % 3 == 0 ? &high : i % 3 == 1 ? &low : &own;
        const double *row = i % 4 == 3 ? x : i % 4 == 2 ? (const double *)bits : plain[i % 4];
        double sum = 0;
        for (; rule; rule = rule->next)
            for (int j = 0; j < rule->order; j++)
                sum += rule->weight * rule->nodes[j] * x[j] * row[j] * (rule->name[0] == 'l' ? 1 : 2);
        y[i] = sum;
    }
}
