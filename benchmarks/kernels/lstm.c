// The log-likelihood of a sequence of characters, each of `b` bits, under a recurrent network of `l` layers of long
// short-term memory whose gates have a weight and a bias per bit.
#include <math.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void layer(int b, const double *weight, const double *bias, double *hidden, double *cell, const double *input) {
    for (int i = 0; i < b; i++) {
        double forget = sigmoid(input[i] * weight[i] + bias[i]);
        double take = sigmoid(hidden[i] * weight[b + i] + bias[b + i]);
        double give = sigmoid(input[i] * weight[2 * b + i] + bias[2 * b + i]);
        double change = tanh(hidden[i] * weight[3 * b + i] + bias[3 * b + i]);
        cell[i] = cell[i] * forget + take * change;
        hidden[i] = give * tanh(cell[i]);
    }
}

void lstm(int l, int c, int b, const double *mains, const double *extra, double *state, const double *sequence,
          double *guess, double *loss) {
    double total = 0;
    for (int t = 0; t + 1 < c; t++) {
        const double *input = sequence + t * b, *next = input + b;
        for (int i = 0; i < b; i++) guess[i] = input[i] * extra[i];
        for (int k = 0; k < l; k++) {
            double *hidden = state + 2 * k * b, *cell = hidden + b;
            layer(b, mains + 8 * k * b, mains + (8 * k + 4) * b, hidden, cell, guess);
            for (int i = 0; i < b; i++) guess[i] = hidden[i];
        }
        double sum = 2;
        for (int i = 0; i < b; i++) {
            guess[i] = guess[i] * extra[b + i] + extra[2 * b + i];
            sum += exp(guess[i]);
        }
        double normal = log(sum);
        for (int i = 0; i < b; i++) total += next[i] * (guess[i] - normal);
    }
    *loss = -total / ((c - 1) * b);
}
