#include <stdlib.h>
#include <string.h>
void hotspot(int h, int w, int steps, const double *t, const double *power, double *r) {
    size_t bytes = sizeof(double) * h * w;
    double *a = malloc(bytes), *b = malloc(bytes);
    memcpy(a, t, bytes);
    for (int i = 0; i < steps; i++) {
#pragma omp parallel for
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                double c = a[y * w + x];
                double l = a[y * w + (x > 0 ? x - 1 : 0)], e = a[y * w + (x < w - 1 ? x + 1 : w - 1)];
                double n = a[(y > 0 ? y - 1 : 0) * w + x], s = a[(y < h - 1 ? y + 1 : h - 1) * w + x];
                b[y * w + x] =
                    c + 0.1 * (power[y * w + x] + (l + e - 2 * c) * 0.5 + (n + s - 2 * c) * 0.5 + (0.3 - c) * 0.02);
            }
        double *s = a;
        a = b;
        b = s;
    }
    memcpy(r, a, bytes);
    free(a);
    free(b);
}
