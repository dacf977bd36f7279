/* Matrix exponential: Taylor series of the scaled matrix until terms vanish, then repeated squaring. */
#include <math.h>
#include <string.h>

#define N 3

static void multiply(double a[N][N], double b[N][N], double out[N][N]) {
    double t[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            t[i][j] = 0;
            for (int k = 0; k < N; k++) t[i][j] += a[i][k] * b[k][j];
        }
    memcpy(out, t, sizeof t);
}

void matrix_exp(const double *x, double *y) {
    double a[N][N], sum[N][N], term[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = x[i * N + j] / 8;
            sum[i][j] = term[i][j] = i == j;
        }
    for (int k = 1; k < 30; k++) {
        double size = 0;
        multiply(term, a, term);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                term[i][j] /= k;
                sum[i][j] += term[i][j];
                size += fabs(term[i][j]);
            }
        if (size < 1e-18) break;
    }
    for (int s = 0; s < 3; s++) multiply(sum, sum, sum);
    memcpy(y, sum, sizeof sum);
}
