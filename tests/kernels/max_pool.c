/* 2 x 2 max pooling with the place of each maximum as an integer output. */
void max_pool(int h, int w, const double *x, double *y, int *where) {
    for (int i = 0; i + 1 < h; i += 2)
        for (int j = 0; j + 1 < w; j += 2) {
            int best = i * w + j;
            if (x[i * w + j + 1] > x[best]) best = i * w + j + 1;
            if (x[(i + 1) * w + j] > x[best]) best = (i + 1) * w + j;
            if (x[(i + 1) * w + j + 1] > x[best]) best = (i + 1) * w + j + 1;
            y[i / 2 * (w / 2) + j / 2] = x[best];
            where[i / 2 * (w / 2) + j / 2] = best;
        }
}
