/* Some of a record's numbers are handed out, as many as the run says: there is room for no more where they go, and the
   text behind them in the record is not among them. */
#include <math.h>
#include <string.h>

typedef struct {
    double at[37], top;
    int turns;
    char text[256];
} result;

static int solve(int n, const double *x, char kind, result *r) {
    r->text[0] = '\0';
    for (int i = 0; i < 37; i++) r->at[i] = sin(x[i % n] * (i + 1));
    r->top = x[0] * x[1];
    r->turns = n;
    if (x[2] > 100) strcpy(r->text, "out of range");
    return kind == 'G' && x[3] > 50 ? 36 : 4;
}

void k(int n, const double *x, double *y) {
    result r, other;
    int m = solve(n, x, x[0] > 10 ? 'P' : 'G', &r);
    if (x[1] > 100) {
        other = r;
        r = other;
    }
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int i = 0; i < m; i++) y[i + 1] = r.at[i + 1];
    y[0] = r.top + (r.text[0] ? 1 : 0);
}
