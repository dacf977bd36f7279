// A leaky recurrent layer, as one finds it in simulation codes: an explicit Euler step per row of the input.
//
//   h <- h + leak * (tanh(W x_t + U h + b) - h)

#include <math.h>

void leaky(int steps, int inputs, int units, const float *w, const float *u, const float *b, const float *leak,
           const float *x, float *next, float *h) {
    for (int j = 0; j < units; j++) h[j] = 0;
    for (int t = 0; t < steps; t++) {
        for (int j = 0; j < units; j++) {
            float sum = b[j];
            for (int i = 0; i < inputs; i++) sum += w[j * inputs + i] * x[t * inputs + i];
            for (int i = 0; i < units; i++) sum += u[j * units + i] * h[i];
            next[j] = h[j] + leak[j] * (tanhf(sum) - h[j]);
        }
        for (int j = 0; j < units; j++) h[j] = next[j];
    }
}
