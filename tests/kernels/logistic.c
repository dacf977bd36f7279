/* Logistic map: a value carried through a loop, non-linear in itself; the orbit written out. */
void logistic(int n, double r, double x, double *orbit) {
    for (int i = 0; i < n; i++) {
        x = r * x * (1 - x);
        orbit[i] = x;
    }
}
