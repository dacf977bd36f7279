// Variadic functions whose unnamed arguments are constants, numbers, more than there are registers, extended numbers,
// addresses and small structures; lists that are copied and handed to other functions.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

struct pair {
    double a, b;
};
struct counted {
    double a;
    int64_t count;
};

static double polynomial(double x, int n, ...) {
    va_list rest;
    va_start(rest, n);
    double s = 0, power = 1;
    for (int i = 0; i < n; i++) {
        s += va_arg(rest, double) * power;
        power *= x;
    }
    va_end(rest);
    return s;
}
static double product(va_list rest, int n) {
    double s = 1;
    while (n--) s *= va_arg(rest, double);
    return s;
}
static double twice(const char *name, double a, ...) {
    va_list rest, again;
    va_start(rest, a);
    va_copy(again, rest);
    double s = a * product(rest, 2) + product(again, 3);
    va_end(again);
    va_end(rest);
    return s;
}
static double mixed(int n, ...) {
    va_list rest;
    va_start(rest, n);
    struct counted c = va_arg(rest, struct counted);
    long double wide = va_arg(rest, long double);
    struct pair p = va_arg(rest, struct pair);
    double s = c.a * c.count + wide * wide + p.a * p.b;
    for (int i = 0; i < n; i++) {
        const double *at = va_arg(rest, const double *);
        s += at[0] * va_arg(rest, double) * va_arg(rest, int);
    }
    va_end(rest);
    return s;
}
static double chain(int n, ...) {
    va_list rest;
    va_start(rest, n);
    double a = va_arg(rest, double), b = va_arg(rest, double);
    va_end(rest);
    return n == 0 ? a : chain(n - 1, b, a * b);
}
static void note(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vfprintf(stderr, format, rest);
    va_end(rest);
}
void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double a = x[i], b = x[(i + 1) % n];
        struct pair p = {b, a};
        struct counted c = {a, i};
        y[i] = polynomial(a, 3, 1.0, 2.0, -0.5) + polynomial(x[0], 2, 0.5, 3.0);
        y[i] += polynomial(0.5, 11, a, b, a * b, a, b, a * a, a, b, b * b, a, b) + twice("twice", a, b, 0.5, a * b);
        y[i] +=
            mixed(5, c, (long double)a * b, p, x, a, 1, x + 1, b, 2, x, a, 3, x + 2, b, 4, x, b, 5) + chain(i, a, b);
        if (a > 1e3) note("%g\n", a);
    }
}
