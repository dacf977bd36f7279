/* Gaussian mixture: points in blocks of 32, transposed, so that all loops over points are vectorised; the products
 * with Q are kept for one block, for all components. */
#include <math.h>

enum { BLOCK = 32 };

/* work: k d + k + BLOCK (2 d + 2 + k d + k) numbers */
void gmm_adjoint(int d, int k, int n, const double *alphas, const double *means, const double *icf, const double *x,
                 double gamma, int m, double err_bar, double *restrict alphas_bar, double *restrict means_bar,
                 double *restrict icf_bar, double *work) {
    int packed = d * (d + 1) / 2;
    double *diagonal = work, *constant = diagonal + k * d, *points = constant + k, *away = points + d * BLOCK;
    double *top = away + d * BLOCK, *sum = top + BLOCK, *products = sum + BLOCK, *terms = products + k * d * BLOCK;
    double top_alpha = alphas[0], sum_alpha = 0;
    for (int j = 1; j < k; j++) top_alpha = alphas[j] > top_alpha ? alphas[j] : top_alpha;
    for (int j = 0; j < k; j++) sum_alpha += exp(alphas[j] - top_alpha);
    for (int j = 0; j < k; j++) {
        alphas_bar[j] = 0;
        constant[j] = alphas[j];
        for (int i = 0; i < d; i++) {
            means_bar[j * d + i] = 0;
            diagonal[j * d + i] = exp(icf[j * packed + i]);
            constant[j] += icf[j * packed + i];
        }
        for (int i = 0; i < packed; i++) icf_bar[j * packed + i] = 0;
    }
    for (int first = 0; first < n; first += BLOCK) {
        int count = n - first < BLOCK ? n - first : BLOCK;
        for (int b = 0; b < BLOCK; b++)
            for (int i = 0; i < d; i++) points[i * BLOCK + b] = b < count ? x[(first + b) * d + i] : 0;
        for (int b = 0; b < BLOCK; b++) {
            top[b] = -INFINITY;
            sum[b] = 0;
        }
        for (int j = 0; j < k; j++) {
            double *restrict term = terms + j * BLOCK, *restrict u = away;
            double square[BLOCK] = {0};
            for (int i = 0; i < d; i++) {
                double *restrict product = products + (j * d + i) * BLOCK, own[BLOCK];
                const double *below = icf + j * packed + d;
                double mean = means[j * d + i], scale = diagonal[j * d + i];
                for (int b = 0; b < BLOCK; b++) {
                    u[i * BLOCK + b] = points[i * BLOCK + b] - mean;
                    own[b] = scale * u[i * BLOCK + b];
                }
                for (int c = 0; c < i; c++) {
                    double q = below[c * (2 * d - c - 1) / 2 + i - c - 1];
                    for (int b = 0; b < BLOCK; b++) own[b] += q * u[c * BLOCK + b];
                }
                for (int b = 0; b < BLOCK; b++) {
                    product[b] = own[b];
                    square[b] += own[b] * own[b];
                }
            }
            for (int b = 0; b < BLOCK; b++) {
                term[b] = constant[j] - 0.5 * square[b];
                top[b] = term[b] > top[b] ? term[b] : top[b];
            }
        }
        for (int j = 0; j < k; j++)
            for (int b = 0; b < BLOCK; b++) sum[b] += terms[j * BLOCK + b] = exp(terms[j * BLOCK + b] - top[b]);
        for (int b = 0; b < BLOCK; b++) sum[b] = b < count ? 1 / sum[b] : 0;
        for (int j = 0; j < k; j++) {
            double p[BLOCK], total = 0, *restrict bar = icf_bar + j * packed, *restrict u = away;
            for (int b = 0; b < BLOCK; b++) total += p[b] = terms[j * BLOCK + b] * sum[b];
            alphas_bar[j] -= total;
            for (int i = 0; i < d; i++)
                for (int b = 0; b < BLOCK; b++) {
                    u[i * BLOCK + b] = points[i * BLOCK + b] - means[j * d + i];
                    products[(j * d + i) * BLOCK + b] *= p[b];
                }
            for (int c = 0; c < d; c++) {
                const double *product = products + (j * d + c) * BLOCK;
                const double *column = icf + j * packed + d + c * (2 * d - c - 1) / 2;
                double *column_bar = bar + d + c * (2 * d - c - 1) / 2, to_mean[BLOCK], to_scale = 0, mean = 0;
                for (int b = 0; b < BLOCK; b++) {
                    to_mean[b] = diagonal[j * d + c] * product[b];
                    to_scale += product[b] * u[c * BLOCK + b];
                }
                bar[c] += to_scale * diagonal[j * d + c];
                for (int i = c + 1; i < d; i++) {
                    const double *lower = products + (j * d + i) * BLOCK;
                    double q = column[i - c - 1], to_q = 0;
                    for (int b = 0; b < BLOCK; b++) {
                        to_mean[b] += q * lower[b];
                        to_q += lower[b] * u[c * BLOCK + b];
                    }
                    column_bar[i - c - 1] += to_q;
                }
                for (int b = 0; b < BLOCK; b++) mean += to_mean[b];
                means_bar[j * d + c] -= mean;
            }
        }
    }
    for (int j = 0; j < k; j++) {
        double square = gamma * gamma, to_logdet = alphas_bar[j] - m;
        alphas_bar[j] = err_bar * (alphas_bar[j] + n * exp(alphas[j] - top_alpha) / sum_alpha);
        for (int i = 0; i < d; i++) {
            double scale = diagonal[j * d + i], *bar = icf_bar + j * packed + i;
            *bar = err_bar * (*bar + to_logdet + square * scale * scale);
            means_bar[j * d + i] *= err_bar;
        }
        for (int i = d; i < packed; i++)
            icf_bar[j * packed + i] = err_bar * (icf_bar[j * packed + i] + square * icf[j * packed + i]);
    }
}
