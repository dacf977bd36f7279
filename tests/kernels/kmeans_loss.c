/* Sum of squared distances to the nearest centre, with the assignment as an integer output. */
double kmeans_loss(int n, int k, int d, const double *x, const double *centre, int *label) {
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double best = 1e300;
        for (int j = 0; j < k; j++) {
            double dist = 0;
            for (int c = 0; c < d; c++) {
                double t = x[i * d + c] - centre[j * d + c];
                dist += t * t;
            }
            if (dist < best) {
                best = dist;
                label[i] = j;
            }
        }
        loss += best;
    }
    return loss;
}
