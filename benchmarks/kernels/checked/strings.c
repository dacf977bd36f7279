#include <stdlib.h>
#include <string.h>
double k(int n, const double *x) {
    char *t = malloc(n + 1);
    for (int i = 0; i < n; i++) {
        int d = (int)(x[i] * 10) % 10;
        t[i] = d == 5 ? ' ' : '0' + d;
    }
    t[n] = 0;
    double s = 0;
    for (int r = 0; r < 20; r++) {
        long v = 0;
        for (char *c = t; *c; c++) {
            if (*c == ' ') {
                s += v % 1000;
                v = 0;
            } else
                v = (v * 10 + (*c - '0')) % 100000;
        }
    }
    free(t);
    return s * x[0];
}
