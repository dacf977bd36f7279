/* Powers of a 3 x 3 rotation-like matrix in local arrays, then the trace. */
double local_matrix(const double *a, int power) {
    double p[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int s = 0; s < power; s++) {
        double q[3][3];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                q[i][j] = 0;
                for (int k = 0; k < 3; k++) q[i][j] += p[i][k] * a[3 * k + j];
            }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) p[i][j] = q[i][j];
    }
    return p[0][0] + p[1][1] * p[2][2];
}
