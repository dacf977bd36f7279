// Stack of bytes.
#include <string.h>

typedef struct {
    char buf[256];
    int top;
} stk;
static void push(stk *s, const void *p, int n) {
    memcpy(s->buf + s->top, p, n);
    s->top += n;
}
static void pop(stk *s, void *p, int n) {
    s->top -= n;
    memcpy(p, s->buf + s->top, n);
}
void k(int n, const double *x, double *y) {
    stk s;
    s.top = 0;
    for (int i = 0; i < n; i++) {
        double d = x[i] * x[i];
        push(&s, &d, 8);
    }
    for (int i = 0; i < n; i++) {
        double d;
        pop(&s, &d, 8);
        y[i] = d * (i + 1);
    }
}
