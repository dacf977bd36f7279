/* Labels as values: tables of them, differences of them, and labels that are kept in memory and compared. */
#include <math.h>

/* A stack machine, as interpreters of formulas are written: each operation jumps to the next one. */
static double run(const unsigned char *code, const double *x) {
    static void *const at[] = {&&push, &&add, &&mul, &&sine, &&end};
    double stack[8];
    int top = -1;
    goto *at[*code++];
push:
    stack[++top] = x[*code++];
    goto *at[*code++];
add:
    top--;
    stack[top] += stack[top + 1];
    goto *at[*code++];
mul:
    top--;
    stack[top] *= stack[top + 1];
    goto *at[*code++];
sine:
    stack[top] = sin(stack[top]);
    goto *at[*code++];
end:
    return stack[top];
}

void machine(int n, const double *x, double *y) {
    const unsigned char code[] = {0, 0, 0, 1, 2, 3, 0, 2, 1, 0, 2, 2, 4};
    for (int i = 0; i < n - 2; i++) y[i] = run(code, x + i);
    for (int i = n - 2; i < n; i++) y[i] = x[i];
}

/* A table that needs no relocation: how far each label is from the first. */
void distances(int n, const double *x, double *y) {
    static const int from[] = {&&next - &&next, &&square - &&next, &&sum - &&next};
    double s = 0.5;
    int i = -1;
next:
    if (++i == n) return;
    y[i] = s;
    goto *(&&next + from[1 + i % 2]);
square:
    s = s * s + x[i];
    goto next;
sum:
    s += x[i] * y[i];
    goto next;
}

/* What comes next is kept with the data, and there may be nothing. */
void states(int n, const double *x, double *y) {
    struct {
        void *then;
        double value;
    } steps[5];
    for (int i = 0; i < 5; i++) {
        steps[i].then = i % 3 ? &&scale : (i ? &&shift : 0);
        steps[i].value = x[i % n];
    }
    double s = 1;
    for (int i = 0; i < n; i++) {
        if (!steps[i].then) goto done;
        goto *steps[i].then;
    scale:
        s *= steps[i].value;
        goto done;
    shift:
        s += exp(steps[i].value);
    done:
        y[i] = s;
    }
}
