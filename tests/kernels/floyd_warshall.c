/* All shortest paths in place: conditional overwriting in a triple loop. */
void floyd_warshall(int n, double *d) {
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double through = d[i * n + k] + d[k * n + j];
                if (through < d[i * n + j]) d[i * n + j] = through;
            }
}
