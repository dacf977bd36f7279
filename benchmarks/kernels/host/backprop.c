#include <math.h>
void backprop(int n, int hidden, const float *x, const float *w, float *h) {
#pragma omp parallel for
    for (int j = 0; j < hidden; j++) {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += x[i] * w[i * hidden + j];
        h[j] = 1.0f / (1.0f + expf(-sum));
    }
}
