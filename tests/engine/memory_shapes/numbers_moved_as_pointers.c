/* Words that hold a number or an address, moved, merged and read as `void *`, in memory of their own type and not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

union word {
    double d;
    void *p;
    double *q;
};
struct node {
    struct node *next;
    union word w;
};
struct tagged {
    int tag;
    union word w;
};
struct number {
    long tag;
    double d;
};
struct place {
    long tag;
    double *q;
};

static void reverse(union word *a, int n) {
    for (int i = 0; i < n / 2; i++) {
        void *t = a[i].p;
        a[i].p = a[n - 1 - i].p, a[n - 1 - i].p = t;
    }
}

static void copy(void *to, const void *from) {
    if (((const struct number *)from)->tag)
        memcpy(to, from, sizeof(struct number));
    else
        ((struct place *)to)->tag = 0, ((struct place *)to)->q = ((const struct place *)from)->q;
}

static struct tagged stack[8];
static int used;
static struct tagged pop(void) { return stack[--used]; }

void k(int n, const double *x, double *y) {
    double of[6];
    union word *a = malloc(6 * sizeof *a), *b = malloc(6 * sizeof *b);
    for (int i = 0; i < n; i++) of[i] = sin(x[i]);
    for (int i = 0; i < n; i++)
        if (i % 3 == 1)
            a[i].q = &of[i];
        else
            a[i].d = x[i] * x[i];
    for (int i = 0; i < n; i++) b[(i + 3) % n].p = a[i].p;
    reverse(b, 3), reverse(b + 3, 3), reverse(b, n);
    for (int i = 0; i < n; i++) y[i] = i % 3 == 1 ? *b[i].q : b[i].d * x[0];

    struct node *list = 0, *copied = 0;
    for (int i = 0; i < n; i++) {
        struct node *one = malloc(sizeof *one);
        one->next = list, list = one;
        if (i % 3 == 2)
            one->w.q = &of[i];
        else
            one->w.d = x[i] * y[i];
    }
    for (struct node *one = list, *next; one; one = next) {
        struct node *other = malloc(sizeof *other);
        other->w.p = one->w.p, other->next = copied, copied = other;
        next = one->next, free(one);
    }
    int at = 0;
    for (struct node *one = copied; one; one = one->next, at++) y[at] += at % 3 == 2 ? *one->w.q : one->w.d;

    for (int i = 0; i < n; i++) {
        void *p = b[(i + 1) % n].p, *q = x[i] > 1 ? a[0].p : a[2].p;
        double v = 0, u;
        if ((i + 1) % 3 != 1) memcpy(&v, &p, 8);
        memcpy(&u, &q, 8);
        y[i] += v * u;
    }

    for (int i = 0; i < n; i++) {
        struct tagged t = {i % 2};
        if (t.tag)
            t.w.q = &of[i];
        else
            t.w.d = y[i] * x[i];
        stack[used++] = t;
    }
    for (struct tagged t; used; y[used] += t.tag ? *t.w.q : t.w.d) t = pop();

    char *from = malloc(16 * 6), *to = malloc(16 * 6);
    for (int i = 0; i < n; i++)
        if (i % 2)
            memcpy(from + 16 * i, &(struct number){1, y[i] * y[i]}, 16);
        else
            memcpy(from + 16 * i, &(struct place){0, &of[i]}, 16);
    for (int i = 0; i < n; i++) copy(to + 16 * ((i + 2) % n), from + 16 * i);
    for (int i = 0; i < n; i++)
        y[i] += i % 2 ? ((struct number *)(to + 16 * i))->d : *((struct place *)(to + 16 * i))->q;
}
