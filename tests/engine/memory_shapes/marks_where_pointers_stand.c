#include <stdint.h>
#include <stdlib.h>

struct node {
    double value;
    uintptr_t next;
};

/* A list whose end is an odd number among addresses. */
static double listed(int n, const double *x) {
    uintptr_t head = 1;
    for (int i = 0; i < n; i++) {
        struct node *new = malloc(sizeof *new);
        new->value = x[i] * x[i];
        new->next = head;
        head = (uintptr_t)new;
    }
    double sum = 0, weight = 1;
    while (!(head & 1)) {
        struct node *at = (struct node *)head;
        sum += weight * at->value;
        weight *= at->value;
        head = at->next;
        free(at);
    }
    return sum;
}

#define GONE ((const double *)-1)
#define LATE ((const double *)2)

/* A table of places with holes, and marks for what was there and for what comes later. */
static double tabled(int n, const double *x, double *products) {
    const double *at[16] = {0};
    for (int i = 0; i < n; i++) {
        int place = i * 7 % 16;
        while (at[place] && at[place] != GONE && at[place] != LATE) place = (place + 1) % 16;
        products[i] = x[i] * x[(i + 1) % n];
        at[place] = products + i;
        if (i % 2) at[(place + 11) % 16] = i % 3 ? GONE : LATE;
    }
    double sum = 0;
    for (int place = 0; place < 16; place++)
        if (at[place] && at[place] != GONE && at[place] != LATE) sum += *at[place] * (place + 1);
    return sum;
}

void k(int n, const double *x, double *y) {
    double products[6];
    y[0] = listed(n, x);
    y[1] = tabled(n, x, products);
    for (int i = 2; i < n; i++) y[i] = products[i];
}
