"""Kernels that are no nested loops over arrays: recursion, linked lists, pointers, file-scope variables."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import DifferentiationError
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

RNG = np.random.default_rng(0)

CASES = {
    "recursion over a number": (
        """
        static double f(int n, double x) {
            if (n <= 1) return x;
            return f(n - 1, x * 1.1) * x + f(n - 2, x * x * 0.3) * 0.5;
        }
        double top(int n, double x) { return f(n, x); }
        """,
        "top",
        "n: i32, x: f64 -> f64",
        {},
        [np.int32(6), 0.8],
    ),
    "recursive transform in place": (
        """
        #include <math.h>
        static void fft(int n, int s, double *a, double *w) {
            if (n == 1) return;
            fft(n / 2, 2 * s, a, w);
            fft(n / 2, 2 * s, a + 2 * s, w);
            for (int k = 0; k < n / 2; k++) {
                double c = cos(6.283185307179586 * k / n), d = -sin(6.283185307179586 * k / n);
                double ar = a[4 * k * s], ai = a[4 * k * s + 1];
                double br = a[4 * k * s + 2 * s], bi = a[4 * k * s + 2 * s + 1];
                double tr = c * br - d * bi, ti = c * bi + d * br;
                w[2 * k] = ar + tr;
                w[2 * k + 1] = ai + ti;
                w[2 * (k + n / 2)] = ar - tr;
                w[2 * (k + n / 2) + 1] = ai - ti;
            }
            for (int k = 0; k < n; k++) {
                a[2 * k * s] = w[2 * k];
                a[2 * k * s + 1] = w[2 * k + 1];
            }
        }
        void run(int n, double *a, double *w) { fft(n, 1, a, w); }
        """,
        "run",
        "n: i32, inout a: f64[2*n], scratch w: f64[2*n]",
        {"n": 8},
        [RNG.standard_normal(16)],
    ),
    "recursion that returns a number beside a pointer": (
        """
        struct pair { double v; double *p; };
        static struct pair walk(double *y, int n, double t) {
            struct pair r = { t, y };
            if (n <= 0) return r;
            struct pair s = walk(y + 1, n - 1, t * y[0]);
            r.v = s.v * t + *s.p;
            if (t > 0) r.p = s.p + 1;
            *r.p *= t;
            return r;
        }
        double program(double a, const double *x) {
            double y[10];
            for (int i = 0; i < 10; i++) y[i] = 0.4 * x[i];
            struct pair s = walk(y, 4, a);
            return s.v * *s.p + y[6];
        }
        """,
        "program",
        "a: f64, x: f64[10] -> f64",
        {},
        [0.7, RNG.uniform(0.5, 1.5, 10)],
    ),
    "list on the stack, followed by recursion": (
        """
        struct node { double v; struct node *next; };
        static double cubes(struct node *p) { return p ? p->v * p->v * p->v + cubes(p->next) * 0.5 : 1.0; }
        double list(int n, const double *x) {
            struct node nodes[8], *head = 0;
            for (int i = 0; i < n; i++) {
                nodes[i].v = x[i];
                nodes[i].next = head;
                head = &nodes[i];
            }
            return cubes(head);
        }
        """,
        "list",
        "n: i32, x: f64[n] -> f64",
        {"n": 5},
        [RNG.standard_normal(5)],
    ),
    "list on the heap": (
        """
        #include <stdlib.h>
        struct node { double v; struct node *next; };
        double list(int n, const double *x) {
            struct node *head = 0;
            double s = 1;
            for (int i = 0; i < n; i++) {
                struct node *fresh = malloc(sizeof *fresh);
                fresh->v = x[i] * x[i];
                fresh->next = head;
                head = fresh;
            }
            while (head) {
                s = s * 0.3 + head->v * s;
                struct node *done = head;
                head = head->next;
                free(done);
            }
            return s;
        }
        """,
        "list",
        "n: i32, x: f64[n] -> f64",
        {"n": 5},
        [RNG.standard_normal(5)],
    ),
    "a union, with numbers in the gaps of its first member": (
        """
        struct b { float w; double h; int k; };
        typedef struct { union { struct b b; double r[3]; } u; int tag; } record;
        __attribute__((noinline)) static void put(record *o, const record *i) { *o = *i; }
        double program(int n, const double *x) {
            record a[4], t;
            double s = 0;
            for (int i = 0; i < n; i++) {
                record v;
                v.tag = i % 2;
                if (v.tag) v.u.b = (struct b){2, x[i], i};
                else { v.u.r[0] = x[i] * x[i]; v.u.r[1] = x[0]; v.u.r[2] = x[i] + 1; }
                put(&a[i], &v);
            }
            t = a[0]; a[0] = a[n - 1]; put(&a[n - 1], &t);
            for (int i = 0; i < n; i++)
                s += a[i].tag ? a[i].u.b.w * a[i].u.b.h * a[i].u.b.k : a[i].u.r[0] * a[i].u.r[1] + a[i].u.r[2];
            return s;
        }
        """,
        "program",
        "n: i32, x: f64[n] -> f64",
        {"n": 4},
        [RNG.uniform(0.5, 1.5, 4)],
    ),
    "records with gaps, whose array ends where only the run knows": (
        """
        struct pair { double c[2]; int count; double scale; };
        double program(int n, const double *x) {
            struct pair kept[16];
            int m = 0;
            for (int i = 0; i < n; i++)
                for (int j = i + 1; j < n; j++) {
                    struct pair p;
                    p.count = x[i] > x[j] ? 1 : 2;
                    for (int k = 0; k < p.count; k++) p.c[k] = x[i] * x[j] + k;
                    p.scale = x[i];
                    if (p.count > 1) kept[m++] = p;
                }
            double s = 0;
            for (int k = 0; k < m; k++)
                for (int i = 0; i < kept[k].count; i++) s += kept[k].c[i] * kept[k].scale;
            return s;
        }
        """,
        "program",
        "n: i32, x: f64[n] -> f64",
        {"n": 4},
        [np.array([1.0, 2.0, 0.5, 3.0])],
    ),
    "an input, or memory that is freed at the end": (
        """
        #include <stdlib.h>
        double program(int n, int k, const double *x) {
            double *v = malloc(8 * sizeof *v), s = 1;
            for (int i = 0; i < n; i++) v[i] = x[i] * x[i];
            const double *q = k > 5 ? v : x;
            for (int j = 0; j < 16; j++)
                for (int i = 0; i < n; i++) s = 0.5 * s * q[(i + j) % n] + q[i];
            free(v);
            return s;
        }
        """,
        "program",
        "n: i32, k: i32, x: f64[n] -> f64",
        {"n": 8},
        [6, RNG.uniform(0.5, 1.5, 8)],
    ),
    "pointers that step through arrays": (
        "double dot(int n, const double *u, const double *v) { double s = 0.5; "
        "while (n-- > 0) s += *u++ * *v++ * s; return s; }",
        "dot",
        "n: i32, u: f64[n], v: f64[n] -> f64",
        {"n": 5},
        [RNG.standard_normal(5), RNG.standard_normal(5)],
    ),
    "a constant table or an active array": (
        """
        static const double table[4] = {1.5, 2.5, 0.5, 3.0};
        double mix(int n, const double *x, const int *w) {
            double s = 0;
            for (int i = 0; i < n; i++) {
                const double *p = w[i] > 1 ? table : x;
                s += p[w[i] & 3] * x[i];
            }
            return s;
        }
        """,
        "mix",
        "n: i32, x: f64[n], w: i32[n] -> f64",
        {"n": 5},
        [RNG.standard_normal(5), np.array([0, 1, 2, 3, 1], np.int32)],
    ),
    "matrix product and dot product of BLAS": (
        """
        extern double ddot_(const int *, const double *, const int *, const double *, const int *);
        extern void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
                           const double *, const int *, const double *, const int *, const double *, double *,
                           const int *);
        double product(int n, const double *a, double *c, double *t) {
            int one = 1, count = n * n;
            double alpha = 1.5, beta = 0.5;
            for (int k = 0; k < 3; k++) {
                dgemm_("N", "T", &n, &n, &n, &alpha, a, &n, c, &n, &beta, t, &n);
                for (int i = 0; i < count; i++) c[i] = 0.1 * t[i] * t[i];
            }
            return ddot_(&count, c, &one, t, &one);
        }
        """,
        "product",
        "n: i32, a: f64[n,n], inout c: f64[n,n], inout t: f64[n,n] -> f64",
        {"n": 3},
        [0.3 * RNG.standard_normal((3, 3)) for _ in range(3)],
    ),
    "records with pointers, copied within a buffer of bytes": (
        """
        #include <string.h>
        struct r { double v; double *p; };
        double f(int n, double *x, char *w) {
            struct r *a = (struct r *)w, *b = a + n;
            for (int i = 0; i < n; i++) { a[i].v = x[i] * x[i]; a[i].p = x + (n - 1 - i); }
            memcpy(b, a, n * sizeof *a);
            double s = 0;
            for (int i = 0; i < n; i++) s += b[i].v * *b[i].p * i;
            return s;
        }
        """,
        "f",
        "n: i32, x: f64[n], scratch w: u8[n, 32] -> f64",
        {"n": 5},
        [RNG.standard_normal(5)],
    ),
    "records with pointers, turned around in an array of numbers": (
        """
        struct r { double v; double *p; };
        double f(int n, double *x, double *w) {
            struct r *a = (struct r *)w, *b = a + n;
            for (int i = 0; i < n; i++) { a[i].v = x[i] * x[i]; a[i].p = x + (n - 1 - i); }
            for (int i = 0; i < n; i++) b[n - 1 - i] = a[i];
            double s = 0;
            for (int i = 0; i < n; i++) s += b[i].v * *b[i].p * i;
            return s;
        }
        """,
        "f",
        "n: i32, x: f64[n], scratch w: f64[n, 4] -> f64",
        {"n": 5},
        [RNG.standard_normal(5)],
    ),
    "numbers of records with pointers, copied into an array": (
        """
        #include <string.h>
        #include <stdlib.h>
        struct r { const double *p; double v[4]; };
        void f(int n, const int *k, const double *x, double *y) {
            struct r *a = malloc(n * sizeof *a);
            for (int i = 0; i < n; i++) { a[i].p = x + k[i]; for (int j = 0; j < 4; j++) a[i].v[j] = x[i] * x[i] * j; }
            for (int i = 0; i < n; i++) memcpy(y + i, a[i].v + k[i], k[n] * 8);
            for (int i = 0; i < n; i++) y[i] *= *a[i].p;
            free(a);
        }
        """,
        "f",
        "n: i32, k: i32[n + 1], x: f64[n], out y: f64[n]",
        {"n": 4},
        [np.array([2, 1, 3, 0, 1], np.int32), RNG.standard_normal(4)],
    ),
    "square roots behind a condition": (
        "#include <math.h>\nvoid roots(int n, const double *x, double *y) "
        "{ for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? sqrt(x[i]) / x[i] : 0; }",
        "roots",
        "n: i32, x: f64[n], out y: f64[n]",
        {"n": 6},
        [np.array([1.0, -1.0, 0.5, 0.0, 2.0, -0.0])],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_three_ways(name: str) -> None:
    source, symbol, signature, dims, inputs = CASES[name]
    # Where a branch ends at zero, the differences of a step across it say nothing: zeros get no such inputs.
    loose = 1e9 if name.startswith("square roots") else 1e-6
    agree(three_way(native(source, symbol, signature, dims), inputs), difference_tolerance=loose)


def test_a_call_starts_from_the_initial_values_of_file_scope_variables() -> None:
    source = "static double sum = 1.0;\ndouble add(double x) { sum += x * x; return sum; }"
    kernel = native(source, "add", "x: f64 -> f64", {})
    assert [float(kernel.run((), [2.0])[0]) for _ in range(3)] == [5.0, 5.0, 5.0]
    agree(three_way(kernel, [0.7]))


def test_file_scope_variable_of_a_recursive_function() -> None:
    source = """
    static double sum;
    static void walk(int n, double x) { if (n > 0) { sum += x * n; walk(n / 2, x * x); walk(n - 2, x); } }
    double total(int n, double x) { walk(n, x); return sum; }
    """
    kernel = native(source, "total", "n: i32, x: f64 -> f64", {})
    agree(three_way(kernel, [np.int32(5), 0.7]))
    first, second = (float(kernel.run((), [np.int32(5), 0.7])[0]) for _ in range(2))
    assert first == second


def test_file_scope_variables_of_a_variadic_function() -> None:
    source = """#include <stdarg.h>
    static int calls; static double weight[3];
    __attribute__((noinline)) static double product(double x, int n, ...) {
      va_list l; va_start(l, n);
      for (int i = 0; i < n; i++) { x *= weight[va_arg(l, int)]; calls++; }
      va_end(l); return x;
    }
    double f(const double *x) {
      for (int i = 0; i < 3; i++) weight[i] = x[i];
      return product(x[2], 2, 0, 1) * product(x[0], 3, 1, 1, 2) + calls;
    }"""
    kernel = native(source, "f", "x: f64[3] -> f64", {})
    agree(three_way(kernel, [np.array([0.7, 1.3, 0.4])]))
    assert float(kernel.run((), [np.ones(3)])[0]) == 6


def test_active_file_scope_variable_of_functions_behind_pointers_is_refused() -> None:
    source = """
    static double sum;
    static void walk(int n, double x);
    static void (*volatile step)(int, double) = walk;
    static void walk(int n, double x) { if (n > 0) { sum += x * n; step(n / 2, x * x); walk(n - 2, x); } }
    double total(int n, double x) { sum = 0; walk(n, x); return sum; }
    """
    kernel = native(source, "total", "n: i32, x: f64 -> f64", {})
    with pytest.raises(DifferentiationError):
        three_way(kernel, [np.int32(5), 0.7])
