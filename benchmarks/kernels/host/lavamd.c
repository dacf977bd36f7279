#include <math.h>
void lavamd(int cells, int per, int ncount, const int *near, const double *pos, const double *q, double alpha,
            double *f) {
    double a2 = 2 * alpha * alpha;
#pragma omp parallel for
    for (int c = 0; c < cells; c++)
        for (int i = 0; i < per; i++) {
            const double *me = pos + 4 * (c * per + i);
            double sx = 0, sy = 0, sz = 0, sw = 0;
            for (int k = 0; k < ncount; k++) {
                int o = near[c * ncount + k];
                for (int j = 0; j < per; j++) {
                    const double *y = pos + 4 * (o * per + j);
                    double r2 = me[3] + y[3] - (me[0] * y[0] + me[1] * y[1] + me[2] * y[2]);
                    double v = exp(-a2 * r2), s = 2 * v, qj = q[o * per + j];
                    sw += qj * v;
                    sx += qj * s * (me[0] - y[0]);
                    sy += qj * s * (me[1] - y[1]);
                    sz += qj * s * (me[2] - y[2]);
                }
            }
            double *out = f + 4 * (c * per + i);
            out[0] = sx;
            out[1] = sy;
            out[2] = sz;
            out[3] = sw;
        }
}
