/* Compensated summation: the derivative is one although the algebra of the correction cancels. */
double kahan(int n, const double *x) {
    double sum = 0, lost = 0;
    for (int i = 0; i < n; i++) {
        double y = x[i] * x[i] - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    return sum;
}
