/* Rows behind tables: of one size each, one kept when its table is gone; counted from 1 in one block; exchanged, as
   pivoting does; and in blocks that a loop makes anew, of which later ones fill less of their table. */
#include <math.h>
#include <stdlib.h>

enum { M = 40 };

static double made(int n, const double *x) {
    double **a = malloc(M * sizeof *a), *kept, s = 0;
    for (int i = M - 1; i >= 0; i--) {
        a[i] = calloc(M, sizeof **a);
        if (a[i] == NULL) abort();
        a[i][i] = x[i % n];
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) a[i][j] = 0.5 * a[i][j] + x[j % n] * a[(i + 1) % M][(j + 1) % M];
    kept = a[7];
    for (int i = 0; i < M; i++) s += a[i][i] * a[M - 1 - i][(i + 3) % M] + a[i][(i + M - 1) % M];
    for (int i = 0; i < M; i++)
        if (i != 7) free(a[i]);
    free(a);
    for (int i = 0; i < M; i++) s += kept[i];
    free(kept);
    return s;
}

static double counted(int n, const double *x) {
    double **a = malloc((M + 1) * sizeof *a), s = 0;
    a[1] = malloc((M * M + 1) * sizeof **a);
    double *block = a[1];
    for (int i = 2; i <= M; i++) a[i] = a[i - 1] + M;
    for (int i = 1; i <= M; i++)
        for (int j = 1; j <= M; j++) a[i][j] = i > 1 && j > 1 ? sin(a[i - 1][j] * a[i][j - 1] + x[j % n]) : x[i % n];
    for (int i = 1; i <= M; i++) s += a[i][M + 1 - i];
    free(block);
    free(a);
    return s;
}

static double exchanged(int n, const double *x) {
    double **a = malloc(M * sizeof *a), s = 0;
    for (int i = 0; i < M; i++) {
        a[i] = malloc(M * sizeof **a);
        for (int j = 0; j < M; j++) a[i][j] = x[(i * 3 + j * j) % n] + 9 * (i == (j * 7 + 3) % M);
    }
    for (int k = 0; k < M; k++) {
        int best = k;
        for (int i = k; i < M; i++) best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
        double *row = a[k];
        a[k] = a[best];
        a[best] = row;
        for (int i = k + 1; i < M; i++)
            for (int j = M - 1; j >= k; j--) a[i][j] -= a[i][k] / a[k][k] * a[k][j];
        s += log(fabs(a[k][k]));
    }
    for (int i = 0; i < M; i++) free(a[i]);
    free(a);
    return s;
}

static double made_anew(int n, const double *x) {
    double *row[M], *blocks[4], s = 0;
    for (int step = 0; step < 4; step++) {
        double *block = blocks[step] = malloc(M * M * sizeof *block);
        for (int i = 0; i < M * M; i++) block[i] = x[i % n] * (step + 1);
        for (int j = 0; j < M - 9 * step; j++) row[j] = block + j * M;
        for (int j = 0; j < M; j++)
            for (int i = 0; i < M; i++) {
                row[j][i] *= x[i % n];
                s += row[j][i] * sin(x[j % n]);
            }
    }
    for (int step = 0; step < 4; step++) free(blocks[step]);
    return s;
}

void k(int n, const double *x, double *y) {
    const double s = made(n, x) + counted(n, x), t = exchanged(n, x) + 1e-3 * made_anew(n, x);
    for (int i = 0; i < n; i++) y[i] = s * x[i] + t * x[n - 1 - i];
}
