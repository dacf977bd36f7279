// Doubles, pairs of floats and texts in one place, in a table that grows.
#include <stdlib.h>

typedef struct {
    int kind;
    union {
        double d;
        float f[2];
        const char *text;
    } u;
} value;

void k(int n, const double *x, double *y) {
    value *v = 0;
    for (int i = 0, room = 0; i < n; i++) {
        if (i == room) {
            room = 2 * room + 1;
            v = realloc(v, room * sizeof(value));
        }
        v[i].kind = i % 3;
        if (i % 3 == 0)
            v[i].u.d = x[i] * x[i];
        else if (i % 3 == 1)
            v[i].u.f[0] = x[i], v[i].u.f[1] = x[i] + 1;
        else
            v[i].u.text = "abc";
    }
    for (int i = 0; i < n; i++)
        y[i] = v[i].kind == 0 ? v[i].u.d * x[0] : v[i].kind == 1 ? v[i].u.f[0] * v[i].u.f[1] : v[i].u.text[1];
    free(v);
}
