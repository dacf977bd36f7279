typedef struct {
    double of[3][3];
} matrix;

static matrix product(matrix a, matrix b) {
    matrix c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double s = 0;
            for (int k = 0; k < 3; k++) s += a.of[i][k] * b.of[k][j];
            c.of[i][j] = s;
        }
    return c;
}

void k(int n, const matrix *a, const matrix *b, matrix *c) {
    for (int i = 0; i < n; i++) c[i] = product(product(a[i], b[i]), a[i]);
}
