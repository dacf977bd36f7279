/* Best path through a trellis: maxima over predecessors, back pointers, the path read backwards. */
double viterbi(int t, int s, const double *emit, const double *move, double *score, int *back, int *path) {
    for (int j = 0; j < s; j++) score[j] = emit[j];
    for (int i = 1; i < t; i++)
        for (int j = 0; j < s; j++) {
            int best = 0;
            double top = score[(i - 1) * s] + move[j];
            for (int k = 1; k < s; k++) {
                double v = score[(i - 1) * s + k] + move[k * s + j];
                if (v > top) {
                    top = v;
                    best = k;
                }
            }
            score[i * s + j] = top + emit[i * s + j];
            back[i * s + j] = best;
        }
    int end = 0;
    for (int j = 1; j < s; j++)
        if (score[(t - 1) * s + j] > score[(t - 1) * s + end]) end = j;
    double result = score[(t - 1) * s + end];
    for (int i = t - 1; i >= 0; i--) {
        path[i] = end;
        if (i > 0) end = back[i * s + end];
    }
    return result;
}
