/* Gaussian mixture: the negative log-posterior of its parameters, from the formulas of the ADBench suite.
 *
 * Component j has the weight softmax(alphas)[j], the mean means[j], and the inverse covariance Q^T Q, where Q is lower
 * triangular. icf[j] holds Q: first the logarithms of its diagonal (d numbers), then what stands strictly below it,
 * column by column (d (d - 1) / 2 numbers). A Wishart prior with the parameters gamma and m keeps Q away from 0 and
 * from infinity:
 *
 *   - sum_i log sum_j softmax(alphas)[j] N(x[i]; means[j], Q_j)
 *   + sum_j (gamma^2 / 2 |Q_j|^2 - m log det Q_j - log C(gamma, m))
 *
 * (ADBench adds the log-likelihood with the other sign; here the sum is what one minimises.)
 */
#include <math.h>

/* Logarithm of the sum of exponentials of v, shifted by the largest entry so that none overflows. */
static double log_sum_exp(int n, const double *v) {
    double top = v[0], sum = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > top) top = v[i];
    for (int i = 0; i < n; i++) sum += exp(v[i] - top);
    return top + log(sum);
}

/* |Q (x - mean)|^2, for Q given by its diagonal and its packed columns below. u and qu are work space. */
static double squared_distance(int d, const double *diagonal, const double *below, const double *mean, const double *x,
                               double *u, double *qu) {
    for (int i = 0; i < d; i++) {
        u[i] = x[i] - mean[i];
        qu[i] = diagonal[i] * u[i];
    }
    for (int j = 0; j < d; j++) {
        const double *column = below + j * (2 * d - j - 1) / 2; /* its first entry stands in row j + 1 */
        for (int i = j + 1; i < d; i++) qu[i] += column[i - j - 1] * u[j];
    }
    double sum = 0;
    for (int i = 0; i < d; i++) sum += qu[i] * qu[i];
    return sum;
}

/* Logarithm of the constant of a Wishart density in d dimensions with m + d + 1 degrees of freedom. */
static double log_wishart_constant(int d, double gamma, int m) {
    const double pi = 3.14159265358979323846;
    int freedom = d + m + 1;
    double log_gamma = 0.25 * d * (d - 1) * log(pi);
    for (int j = 1; j <= d; j++) log_gamma += lgamma(0.5 * (freedom + 1 - j));
    return freedom * d * (log(gamma) - 0.5 * log(2)) - log_gamma;
}

void gmm_objective(int d, int k, int n, const double *alphas, const double *means, const double *icf, const double *x,
                   double gamma, int m, double *diagonal, double *logdet, double *terms, double *u, double *qu,
                   double *err) {
    const double log_2_pi = 1.83787706640934548356;
    int packed = d * (d + 1) / 2;
    double prior = 0;
    for (int j = 0; j < k; j++) {
        const double *q = icf + j * packed;
        double squares = 0;
        logdet[j] = 0;
        for (int i = 0; i < d; i++) {
            logdet[j] += q[i];
            diagonal[j * d + i] = exp(q[i]);
            squares += diagonal[j * d + i] * diagonal[j * d + i];
        }
        for (int i = d; i < packed; i++) squares += q[i] * q[i];
        prior += 0.5 * gamma * gamma * squares - m * logdet[j];
    }
    double loglik = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) {
            double distance =
                squared_distance(d, diagonal + j * d, icf + j * packed + d, means + j * d, x + i * d, u, qu);
            terms[j] = alphas[j] + logdet[j] - 0.5 * distance;
        }
        loglik += log_sum_exp(k, terms);
    }
    loglik -= n * (0.5 * d * log_2_pi + log_sum_exp(k, alphas));
    *err = prior - k * log_wishart_constant(d, gamma, m) - loglik;
}
