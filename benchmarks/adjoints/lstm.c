/* Long short-term memory: rows of bits are filled up to whole vectors; what a layer computes of a character is kept,
 * nothing is computed again but one line of the output. */
#include <math.h>
#include <string.h>

enum { LANES = 8, FORGET = 0, TAKE, GIVE, CHANGE, CELL, HIDDEN, SQUASHED, INPUT, KEPT };

/* rows of b numbers as rows of w numbers, zeros behind them */
static void widen(int rows, int b, int w, const double *restrict from, double *restrict to) {
    memset(to, 0, (size_t)rows * w * sizeof *to);
    for (int r = 0; r < rows; r++) memcpy(to + r * w, from + r * b, b * sizeof *to);
}

static void narrow(int rows, int b, int w, const double *restrict from, double *restrict to) {
    for (int r = 0; r < rows; r++) memcpy(to + r * b, from + r * w, b * sizeof *to);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* tanh, exact to rounding of 1 */
static double squash(double x) { return 1 - 2 / (1 + exp(2 * x)); }

static void layer(int w, const double *restrict weight, const double *input, double *restrict state,
                  double *restrict kept, double *out) {
    const double *bias = weight + 4 * w;
    double *hidden = state, *cell = state + w;
    for (int first = 0; first < w; first += LANES)
#pragma clang loop vectorize(assume_safety)
        for (int i = first; i < first + LANES; i++) {
            double forget = sigmoid(input[i] * weight[i] + bias[i]);
            double take = sigmoid(hidden[i] * weight[w + i] + bias[w + i]);
            double give = sigmoid(input[i] * weight[2 * w + i] + bias[2 * w + i]);
            double change = squash(hidden[i] * weight[3 * w + i] + bias[3 * w + i]);
            double next = cell[i] * forget + take * change, squashed = squash(next);
            kept[FORGET * w + i] = forget;
            kept[TAKE * w + i] = take;
            kept[GIVE * w + i] = give;
            kept[CHANGE * w + i] = change;
            kept[CELL * w + i] = cell[i];
            kept[HIDDEN * w + i] = hidden[i];
            kept[SQUASHED * w + i] = squashed;
            kept[INPUT * w + i] = input[i];
            cell[i] = next;
            out[i] = hidden[i] = give * squashed;
        }
}

/* out_bar: of the layer's output; becomes that of its input */
static void layer_adjoint(int w, const double *restrict weight, const double *restrict kept, double *restrict out_bar,
                          double *restrict state_bar, double *restrict weight_bar) {
    double *hidden_bar = state_bar, *cell_bar = state_bar + w, *bias_bar = weight_bar + 4 * w;
    for (int first = 0; first < w; first += LANES)
#pragma clang loop vectorize(assume_safety)
        for (int i = first; i < first + LANES; i++) {
            double forget = kept[FORGET * w + i], take = kept[TAKE * w + i], give = kept[GIVE * w + i];
            double change = kept[CHANGE * w + i], hidden = kept[HIDDEN * w + i], squashed = kept[SQUASHED * w + i];
            double input = kept[INPUT * w + i], bar = out_bar[i] + hidden_bar[i];
            double to_cell = cell_bar[i] + bar * give * (1 - squashed * squashed);
            double a = to_cell * kept[CELL * w + i] * forget * (1 - forget), b = to_cell * change * take * (1 - take);
            double c = bar * squashed * give * (1 - give), d = to_cell * take * (1 - change * change);
            cell_bar[i] = to_cell * forget;
            hidden_bar[i] = b * weight[w + i] + d * weight[3 * w + i];
            out_bar[i] = a * weight[i] + c * weight[2 * w + i];
            weight_bar[i] += a * input;
            weight_bar[w + i] += b * hidden;
            weight_bar[2 * w + i] += c * input;
            weight_bar[3 * w + i] += d * hidden;
            bias_bar[i] += a;
            bias_bar[w + i] += b;
            bias_bar[2 * w + i] += c;
            bias_bar[3 * w + i] += d;
        }
}

/* work, for w = b rounded up to LANES: w (20 l + 10 + (c - 1) (8 l + 2)) numbers */
void lstm_adjoint(int l, int c, int b, const double *mains, const double *extra, const double *state0,
                  const double *sequence, double loss_bar, const double *state_final_bar, double *mains_bar,
                  double *extra_bar, double *state_bar, double *work) {
    int w = (b + LANES - 1) / LANES * LANES;
    double *weights = work, *state = weights + 8 * l * w, *weights_bar = state + 2 * l * w;
    double *ends = weights_bar + 8 * l * w, *ends_bar = ends + 3 * w, *back = ends_bar + 3 * w;
    double *flow = back + 2 * l * w, *used = flow + w, *input = used + w, *next = input + w;
    double *tops = next + w, *chances = tops + (c - 1) * w, *kept = chances + (c - 1) * w;
    double each = -loss_bar / ((c - 1) * b);
    widen(8 * l, b, w, mains, weights);
    widen(3, b, w, extra, ends);
    widen(2 * l, b, w, state0, state);
    widen(2 * l, b, w, state_final_bar, back);
    memset(weights_bar, 0, 8 * (size_t)l * w * sizeof *work);
    memset(ends_bar, 0, 3 * (size_t)w * sizeof *work);
    for (int i = 0; i < w; i++) used[i] = i < b;
    memset(input, 0, 2 * (size_t)w * sizeof *work);
    for (int t = 0; t + 1 < c; t++) {
        memcpy(input, sequence + t * b, b * sizeof *work);
        double *out = tops + t * w, *chance = chances + t * w, sum = 2;
        for (int i = 0; i < w; i++) flow[i] = input[i] * ends[i];
        for (int k = 0; k < l; k++)
            layer(w, weights + 8 * k * w, k ? out : flow, state + 2 * k * w, kept + (t * l + k) * KEPT * w, out);
        for (int i = 0; i < w; i++) {
            chance[i] = used[i] * exp(out[i] * ends[w + i] + ends[2 * w + i]);
            sum += chance[i];
        }
        for (int i = 0; i < w; i++) chance[i] /= sum;
    }
    for (int t = c - 2; t >= 0; t--) {
        const double *out = tops + t * w, *chance = chances + t * w;
        double seen = 0;
        memcpy(next, sequence + (t + 1) * b, b * sizeof *work);
        for (int i = 0; i < w; i++) seen += next[i];
        for (int i = 0; i < w; i++) {
            double bar = each * (next[i] - seen * chance[i]);
            ends_bar[w + i] += bar * out[i];
            ends_bar[2 * w + i] += bar;
            flow[i] = bar * ends[w + i];
        }
        for (int k = l - 1; k >= 0; k--)
            layer_adjoint(w, weights + 8 * k * w, kept + (t * l + k) * KEPT * w, flow, back + 2 * k * w,
                          weights_bar + 8 * k * w);
        const double *first = sequence + t * b;
        for (int i = 0; i < b; i++) ends_bar[i] += flow[i] * first[i];
    }
    narrow(8 * l, b, w, weights_bar, mains_bar);
    narrow(3, b, w, ends_bar, extra_bar);
    narrow(2 * l, b, w, back, state_bar);
}
