/* Sparse matrix times vector: each entry meets one row's cotangent and one element of x. */
void csr_matvec_adjoint(int rows, int cols, const int *restrict start, const int *restrict col,
                        const double *restrict val, const double *restrict x, const double *restrict y_bar,
                        double *restrict val_bar, double *restrict x_bar) {
    for (int j = 0; j < cols; j++) x_bar[j] = 0;
    for (int i = 0; i < rows; i++) {
        double bar = y_bar[i];
        for (int k = start[i]; k < start[i + 1]; k++) val_bar[k] = bar * x[col[k]];
        for (int k = start[i]; k < start[i + 1]; k++) x_bar[col[k]] += bar * val[k];
    }
}
