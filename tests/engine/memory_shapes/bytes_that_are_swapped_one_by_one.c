/* A generic sort whose records are swapped byte for byte, and words that are, at addresses with bytes in common;
   numbers that are turned around, their bytes one after the other, without a loop. */
#include <stdlib.h>

struct record {
    double key, w;
    int id;
    float g;
};
typedef int (*order)(const void *, const void *);

static void swap(char *a, char *b, size_t size) {
    while (size-- > 0) {
        char t = *a;
        *a++ = *b;
        *b++ = t;
    }
}

static void sort(char *v, size_t n, size_t size, order compare) {
    if (n < 2) return;
    size_t last = 0;
    swap(v, v + n / 2 * size, size);
    for (size_t i = 1; i < n; i++)
        if (compare(v + i * size, v) < 0) swap(v + ++last * size, v + i * size, size);
    swap(v, v + last * size, size);
    sort(v, last, size, compare);
    sort(v + (last + 1) * size, n - last - 1, size, compare);
}

static int by_key(const void *a, const void *b) {
    const struct record *p = a, *q = b;
    return p->key < q->key ? -1 : p->key > q->key;
}

#define BYTE(i) t = a[i], a[i] = b[i], b[i] = t;
static void swap_number(char *a, char *b) {
    char t;
    BYTE(0) BYTE(1) BYTE(2) BYTE(3) BYTE(4) BYTE(5) BYTE(6) BYTE(7)
}

void k(int n, const double *x, double *y) {
    struct record *r = malloc(n * sizeof *r);
    for (int i = 0; i < n; i++) r[i] = (struct record){x[i], x[i] * x[(i + 1) % n], i, i};
    sort((char *)r, n, sizeof *r, by_key);
    for (int i = 0; i < n; i++) y[i] = r[i].key * r[i].w * (i + 1) + r[i].id * r[i].key * r[i].g;
    swap((char *)y, (char *)(y + 1), 4 * sizeof *y);
    free(r);
    double *v = malloc(n * sizeof *v);
    for (int i = 0; i < n; i++) v[i] = x[i] * x[i];
    for (int i = 0; i < n / 2; i++) swap_number((char *)(v + i), (char *)(v + n - 1 - i));
    for (int i = 0; i < n; i++) y[i] += v[i] * (i + 2);
    free(v);
}
