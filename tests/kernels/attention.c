/* Causal attention of one head: scores, a masked softmax whose length grows with the row, weighted values. */
#include <math.h>

void attention(int n, int d, const double *q, const double *k, const double *v, double *w, double *out) {
    for (int i = 0; i < n; i++) {
        double top = -INFINITY, sum = 0;
        for (int j = 0; j <= i; j++) {
            w[j] = 0;
            for (int c = 0; c < d; c++) w[j] += q[i * d + c] * k[j * d + c];
            w[j] /= sqrt(d);
            top = fmax(top, w[j]);
        }
        for (int j = 0; j <= i; j++) sum += w[j] = exp(w[j] - top);
        for (int c = 0; c < d; c++) {
            out[i * d + c] = 0;
            for (int j = 0; j <= i; j++) out[i * d + c] += w[j] / sum * v[j * d + c];
        }
    }
}
