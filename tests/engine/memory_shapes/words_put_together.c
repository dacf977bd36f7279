// Words put together.
#include <string.h>

typedef double v2 __attribute__((vector_size(16)));
typedef long l2 __attribute__((vector_size(16)));
void k(int n, const double *x, double *y) {
    for (int i = 0; i + 1 < n; i += 2) {
        l2 t = {0, 0};
        long a, b;
        memcpy(&a, x + i, 8);
        memcpy(&b, x + n - 1 - i, 8);
        t[0] = b;
        t[1] = a;
        v2 d = (v2)t;
        d *= d;
        memcpy(y + i, &d, 16);
    }
}
