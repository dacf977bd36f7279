/* Weighted counts and means per bin; the bin numbers are 8-bit integers. */
void histogram(int n, int bins, const unsigned char *bin, const double *w, const double *x, double *total,
               double *mean) {
    for (int b = 0; b < bins; b++) total[b] = mean[b] = 0;
    for (int i = 0; i < n; i++) {
        total[bin[i]] += w[i];
        mean[bin[i]] += w[i] * x[i];
    }
    for (int b = 0; b < bins; b++)
        if (total[b] != 0) mean[b] /= total[b];
}
