/* Log-likelihood of a hidden Markov model by the scaled forward algorithm; symbols are integers. */
#include <math.h>

double hmm_forward(int t, int s, int symbols, const int *seen, const double *move, const double *emit, double *alpha,
                   double *next) {
    double loglik = 0;
    for (int j = 0; j < s; j++) alpha[j] = emit[j * symbols + seen[0]] / s;
    for (int i = 1; i <= t; i++) {
        double sum = 0;
        for (int j = 0; j < s; j++) sum += alpha[j];
        loglik += log(sum);
        for (int j = 0; j < s; j++) alpha[j] /= sum;
        if (i == t) break;
        for (int j = 0; j < s; j++) {
            next[j] = 0;
            for (int k = 0; k < s; k++) next[j] += alpha[k] * move[k * s + j];
            next[j] *= emit[j * symbols + seen[i]];
        }
        for (int j = 0; j < s; j++) alpha[j] = next[j];
    }
    return loglik;
}
