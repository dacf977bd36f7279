#include <math.h>
typedef struct {
    double x[3], v[3], m;
} B;
void k(int n, const double *q, double *out) {
    B b[64];
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < 3; d++) {
            b[i].x[d] = q[3 * i + d];
            b[i].v[d] = 0;
        }
        b[i].m = 1;
    }
    for (int t = 0; t < 20; t++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (i != j) {
                    double r[3], s = 0.01;
                    for (int d = 0; d < 3; d++) {
                        r[d] = b[j].x[d] - b[i].x[d];
                        s += r[d] * r[d];
                    }
                    double w = b[j].m / (s * sqrt(s));
                    for (int d = 0; d < 3; d++) b[i].v[d] += 0.001 * w * r[d];
                }
        for (int i = 0; i < n; i++)
            for (int d = 0; d < 3; d++) b[i].x[d] += 0.001 * b[i].v[d];
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) out[3 * i + d] = b[i].x[d];
}
