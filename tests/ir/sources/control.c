/* Loops, switches, computed goto, recursion, variadic calls, function pointers, setjmp, variable arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef double (*unary)(double);
static jmp_buf back;
_Thread_local int depth;
static unary chosen;
static double twice(double x) { return 2 * x; }
static double square(double x) { return x * x; }
static unary table[2] = {twice, square};
extern int outside __attribute__((weak));
extern double unknown(double) __attribute__((pure));
int common_variable;
__attribute__((section(".special"), aligned(64))) int placed[4] = {1, 2, 3};
__attribute__((visibility("hidden"))) int hidden = 7;
const char *const words[] = {"one", "two \"quoted\"\n", "\x01\xff", ""};

int interpret(const unsigned char *code, int x) {
    static const void *const labels[] = {&&stop, &&increment, &&negate, &&loop};
    goto *labels[*code++ & 3];
increment:
    x++;
    goto *labels[*code++ & 3];
negate:
    x = -x;
    goto *labels[*code++ & 3];
loop:
    if (x < 100) goto increment;
stop:
    return x;
}

double sum(int count, ...) {
    va_list list;
    double s = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) s += va_arg(list, double);
    va_end(list);
    return s;
}

long fibonacci(long n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

double apply(int k, double x) {
    chosen = table[k & 1];
    return chosen(x) + (&outside ? outside : 0) + unknown(x);
}

int classify(long x) {
    switch (x) {
        case -5: return 1;
        case 0: case 1: case 2: return 2;
        case 1000000000000: return 3;
        default: break;
    }
    switch (x & 7) { case 1: return 10; case 3: return 30; case 5: return 50; case 6: return 66; }
    return 0;
}

double scratch(int n, double x) {
    double a[n];
    for (int i = 0; i < n; i++) a[i] = i ? a[i - 1] * x : 1.0;
    double s = 0;
    int i = 0;
    while (1) {
        if (i >= n) break;
        if (a[i] > 1e6) { i += 2; continue; }
        s += a[i++];
    }
    do { s *= 0.5; } while (s > 10.0);
    return s;
}

int protected_call(int n) {
    if (setjmp(back)) return -1;
    depth++;
    if (n < 0) longjmp(back, 1);
    if (n == 77) abort();
    printf("%s %d %g\n", words[n & 3], n, sum(3, 1.0, 2.0, 3.0));
    return n;
}

int assembled(int x) {
    int y, z = x;
    __asm__ volatile("movl %1, %0\n\tnop" : "=r"(y) : "r"(x) : "memory", "cc");
    __asm__ goto("# %l0" ::: : away);
    return y + z;
away:
    return 0;
}

struct big { double a[8]; int n; };
double by_value(struct big b, struct big *c) { struct big d = *c; d.a[1] += b.a[b.n]; *c = d; return d.a[1]; }
struct big returned(double x) { struct big b = {{x}, 1}; return b; }
