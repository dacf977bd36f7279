// Masked words.
#include <string.h>

typedef double v2 __attribute__((vector_size(16)));
typedef long l2 __attribute__((vector_size(16)));
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i += 2) {
        v2 t;
        memcpy(&t, x + i, 16);
        l2 m = t > 1.0;
        v2 a = t * t, b = 3 * t;
        v2 r = (v2)(((l2)a & m) | ((l2)b & ~m));
        memcpy(y + i, &r, 16);
    }
}
