/* Conjugate gradients on a symmetric positive matrix until the residual is small or the steps run out. */
void conjugate_gradient(int n, const double *a, const double *b, double *r, double *p, double *ap, double *x) {
    double rr = 0;
    for (int i = 0; i < n; i++) {
        x[i] = 0;
        r[i] = p[i] = b[i];
        rr += r[i] * r[i];
    }
    for (int step = 0; step < n; step++) {
        double pap = 0, next = 0;
        for (int i = 0; i < n; i++) {
            ap[i] = 0;
            for (int j = 0; j < n; j++) ap[i] += a[i * n + j] * p[j];
            pap += p[i] * ap[i];
        }
        double alpha = rr / pap;
        for (int i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
            next += r[i] * r[i];
        }
        if (next < 1e-20) return;
        for (int i = 0; i < n; i++) p[i] = r[i] + next / rr * p[i];
        rr = next;
    }
}
