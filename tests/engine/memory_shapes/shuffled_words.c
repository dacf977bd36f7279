// Shuffled words.
#include <string.h>

typedef double v2 __attribute__((vector_size(16)));
typedef long l2 __attribute__((vector_size(16)));
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i += 2) {
        l2 t;
        memcpy(&t, x + i, 16);
        l2 s = __builtin_shufflevector(t, t, 1, 0);
        v2 d = (v2)s;
        long q = t[0];
        double e;
        memcpy(&e, &q, 8);
        d = d * d + e;
        memcpy(y + i, &d, 16);
    }
}
