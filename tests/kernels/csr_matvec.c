/* Sparse matrix (compressed rows) times vector: loop bounds and indices from integer arrays. */
void csr_matvec(int rows, int cols, int nnz, const int *start, const int *col, const double *val, const double *x,
                double *y) {
    (void)cols;
    (void)nnz;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int k = start[i]; k < start[i + 1]; k++) sum += val[k] * x[col[k]];
        y[i] = sum;
    }
}
