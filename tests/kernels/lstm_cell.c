/* A sequence through one LSTM layer, hidden and cell state updated in place. */
#include <math.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

void lstm_cell(int steps, int d, const double *weight, const double *bias, const double *x, double *h, double *c) {
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < d; i++) {
            double forget = sigmoid(x[t * d + i] * weight[i] + bias[i]);
            double ingate = sigmoid(h[i] * weight[d + i] + bias[d + i]);
            double outgate = sigmoid(x[t * d + i] * weight[2 * d + i] + bias[2 * d + i]);
            double change = tanh(h[i] * weight[3 * d + i] + bias[3 * d + i]);
            c[i] = c[i] * forget + ingate * change;
            h[i] = outgate * tanh(c[i]);
        }
    }
}
