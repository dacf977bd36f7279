#include <math.h>
#include <stdlib.h>
static int lo(int a) { return a > 0 ? a : 0; }
static int hi(int a, int b) { return a < b ? a : b; }
void srad(int h, int w, int steps, double lam, const double *img, double *r) {
    size_t n = (size_t)h * w, bytes = n * sizeof(double);
    double *j = malloc(bytes), *c = malloc(bytes), *dn = malloc(bytes), *ds = malloc(bytes), *dw = malloc(bytes),
           *de = malloc(bytes);
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) j[i] = exp(img[i]);
    for (int it = 0; it < steps; it++) {
        double sum = 0, sum2 = 0;
#pragma omp parallel for reduction(+ : sum, sum2)
        for (size_t i = 0; i < n; i++) {
            sum += j[i];
            sum2 += j[i] * j[i];
        }
        double mean = sum / n, var = sum2 / n - mean * mean, q0 = var / (mean * mean);
#pragma omp parallel for
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                int at = y * w + x;
                double v = j[at];
                double nn = j[lo(y - 1) * w + x] - v, s = j[hi(y + 1, h - 1) * w + x] - v;
                double l = j[y * w + lo(x - 1)] - v, e = j[y * w + hi(x + 1, w - 1)] - v;
                double g2 = (nn * nn + s * s + l * l + e * e) / (v * v), lap = (nn + s + l + e) / v;
                double num = 0.5 * g2 - (1.0 / 16.0) * lap * lap, den = 1 + 0.25 * lap, q = num / (den * den);
                double k = 1.0 / (1.0 + (q - q0) / (q0 * (1 + q0)));
                c[at] = k < 0 ? 0 : k > 1 ? 1 : k;
                dn[at] = nn;
                ds[at] = s;
                dw[at] = l;
                de[at] = e;
            }
#pragma omp parallel for
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                int at = y * w + x;
                double here = c[at], south = c[hi(y + 1, h - 1) * w + x], east = c[y * w + hi(x + 1, w - 1)];
                j[at] += 0.25 * lam * (here * dn[at] + south * ds[at] + here * dw[at] + east * de[at]);
            }
    }
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) r[i] = log(j[i]);
    free(j);
    free(c);
    free(dn);
    free(ds);
    free(dw);
    free(de);
}
