// Two floats in a word.
#include <stdint.h>
#include <string.h>

void k(int n, const float *x, float *y) {
    uint64_t w[8];
    for (int i = 0; i < n; i += 2) memcpy(&w[i / 2], x + i, 8);
    for (int i = 0; i < n; i += 2) {
        uint64_t t = w[(n - i) / 2 - 1];
        float f[2];
        memcpy(f, &t, 8);
        y[i] = f[0] * f[1];
        y[i + 1] = f[1];
    }
}
