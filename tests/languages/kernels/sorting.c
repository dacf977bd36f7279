// Sorting and searching in C, by the library, with comparators of the kernel.
#include <stdlib.h>

static int compare_sorted_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
void sorted_numbers(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    qsort(y, n, sizeof(double), compare_sorted_numbers);
    for (int i = 0; i < n; i++) y[i] *= i + 1;
}

struct P {
    double v;
    int id;
};
static int compare_sorted_structs(const void *a, const void *b) {
    double x = ((const struct P *)a)->v, y = ((const struct P *)b)->v;
    return x < y ? -1 : x > y;
}
void sorted_structs(int n, const double *x, double *y) {
    struct P *p = malloc(n * sizeof *p);
    for (int i = 0; i < n; i++) {
        p[i].v = x[i] * x[i];
        p[i].id = i;
    }
    qsort(p, n, sizeof(struct P), compare_sorted_structs);
    for (int i = 0; i < n; i++) y[i] = p[i].v * (i + 1) + x[p[i].id];
    free(p);
}

static int compare_sorted_pointers(const void *a, const void *b) {
    double x = **(const double *const *)a, y = **(const double *const *)b;
    return x < y ? -1 : x > y;
}
void sorted_pointers(int n, const double *x, double *y) {
    const double **p = malloc(n * sizeof *p);
    for (int i = 0; i < n; i++) p[i] = x + i;
    qsort(p, n, sizeof(*p), compare_sorted_pointers);
    for (int i = 0; i < n; i++) y[i] = *p[i] * (i + 1);
    free(p);
}

static const double *key;
static int compare_sorted_indices(const void *a, const void *b) {
    double x = key[*(const int *)a], y = key[*(const int *)b];
    return x < y ? -1 : x > y;
}
void sorted_indices(int n, const double *x, double *y) {
    int idx[64];
    for (int i = 0; i < n; i++) idx[i] = i;
    key = x;
    qsort(idx, n, sizeof(int), compare_sorted_indices);
    for (int i = 0; i < n; i++) y[i] = x[idx[i]] * (i + 1);
}

static int compare_searched(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
void searched(int n, const double *x, double *y) {
    double t[8] = {0, .5, 1, 1.5, 2, 2.5, 3, 4};
    for (int i = 0; i < n; i++) {
        double q = ((int)(x[i] * 2)) * .5;
        double *p = bsearch(&q, t, 8, sizeof(double), compare_searched);
        y[i] = p ? x[i] * x[i] * (p - t) : -1;
    }
}