/* Jacobi sweeps between two buffers whose pointers are exchanged after every sweep. */
void jacobi_swap(int n, int sweeps, const double *f, double *work, double *u) {
    double *now = u, *next = work;
    for (int i = 0; i < n; i++) work[i] = u[i];
    for (int s = 0; s < sweeps; s++) {
        for (int i = 1; i < n - 1; i++) next[i] = 0.5 * (now[i - 1] + now[i + 1] * now[i]) + f[i];
        double *t = now;
        now = next;
        next = t;
    }
    if (now != u)
        for (int i = 0; i < n; i++) u[i] = now[i];
}
