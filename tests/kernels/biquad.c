/* A cascade of recursive filters over a signal in place, with the state of each section on the stack. */
void biquad(int sections, int n, const double *coef, double *x) {
    for (int s = 0; s < sections; s++) {
        const double *k = coef + 5 * s;
        double z1 = 0, z2 = 0;
        for (int i = 0; i < n; i++) {
            double in = x[i], out = k[0] * in + z1;
            z1 = k[1] * in - k[3] * out + z2;
            z2 = k[2] * in - k[4] * out;
            x[i] = out;
        }
    }
}
