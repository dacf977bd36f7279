void k(int n, int m, const int *nodes, const double *stiffness, const double *u, double *v) {
    for (int i = 0; i < n; i++) v[i] = 0;
    for (int e = 0; e < m; e++) {
        double own[8], forces[8];
        for (int a = 0; a < 8; a++) own[a] = u[nodes[8 * e + a]];
        for (int a = 0; a < 8; a++) {
            forces[a] = 0;
            for (int b = 0; b < 8; b++) forces[a] += stiffness[8 * a + b] * own[b];
        }
        for (int a = 0; a < 8; a++) v[nodes[8 * e + a]] += forces[a];
    }
}
