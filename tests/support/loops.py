"""Kernels with a loop that is worth checkpointing, of every shape that can be: what they are called with, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jax_enzyme.options import Options
from jax_enzyme.signature import Binding
from tests.support.engine import Native, native


@dataclass(frozen=True)
class Long:
    """A kernel; `inputs` makes its arguments, `dims` are its dimensions."""

    source: str
    signature: str
    dims: dict[str, int]
    inputs: Callable[[np.random.Generator], list[Any]]
    lang: str = "c"

    def kernel(self, checkpoint: Any) -> Native:
        made = native(self.source, "kernel", self.signature, {}, self.lang, flags=("-g",))
        return replace(made, binding=Binding.of(self.dims, {}), options=Options(checkpoint=checkpoint))

    def arguments(self) -> list[Any]:
        return self.inputs(np.random.default_rng(1))


LONG = {
    "a convergence loop": Long(
        """
        #include <math.h>
        int kernel(int n, int nano, const double *b, double *x, double *w) {
            double error = 1;
            int count = 0;
            while (error > nano * 1e-9) {
                error = 0;
                for (int i = 0; i < n; i++) {
                    w[i] = 0.4 * sin(x[(i + 1) % n]) + b[i] + 0.2 * x[i];
                    error += (w[i] - x[i]) * (w[i] - x[i]);
                }
                for (int i = 0; i < n; i++) x[i] = w[i];
                count++;
            }
            return count;
        }
        """,
        "n: i32, nano: i32, b: f64[n], inout x: f64[n], scratch w: f64[n] -> i32",
        {"n": 5},
        lambda r: [np.int32(100), r.uniform(0.2, 1, 5), r.uniform(0.2, 1, 5)],
    ),
    "several ways out": Long(
        """
        #include <math.h>
        double kernel(int n, int steps, double limit, const double *b, double *x) {
            double s = 0;
            for (int t = 0; t < steps; t++) {
                for (int i = 0; i < n; i++) {
                    x[i] = x[i] * 1.01 + 0.1 * sin(b[i] * x[i]);
                    s += x[i] * x[i];
                    if (s > limit) goto out;
                }
                if (x[0] > 3) break;
                if (x[1] > 2.5) return s * x[1];
            }
            s *= 2;
        out:
            return s + x[2];
        }
        """,
        "n: i32, steps: i32, limit: f64, b: f64[n], inout x: f64[n] -> f64",
        {"n": 5},
        lambda r: [np.int32(60), 1e9, r.uniform(0.2, 1, 5), r.uniform(0.2, 1, 5)],
    ),
    "steps that are taken back, and numbers by chance": Long(
        """
        #include <math.h>
        #include <stdint.h>
        #include <string.h>
        static double energy;
        static int taken;
        double kernel(int n, double end, double limit, const double *b, double *x) {
            uint64_t random = 88172645463325252ull;
            double t = 0, h = 0.3, kept[8];
            energy = taken = 0;
            while (t < end) {
                memcpy(kept, x, n * sizeof *x);
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                int at = random % n;
                double change = 0;
                for (int i = 0; i < n; i++) {
                    x[i] += h * sin(x[(i + at) % n] * b[i]);
                    change += (x[i] - kept[i]) * (x[i] - kept[i]);
                }
                if (change > limit) {
                    memcpy(x, kept, n * sizeof *x);
                    h *= 0.5;
                    continue;
                }
                energy += h * x[at] * (double)(random >> 11) / 9007199254740992.0;
                t += h;
                h *= 1.2 - 0.1 * x[0] * h;
                taken++;
            }
            return energy * taken + t;
        }
        """,
        "n: i32, end: f64, limit: f64, b: f64[n], inout x: f64[n] -> f64",
        {"n": 5},
        lambda r: [1.7, 0.01, r.uniform(0.2, 1, 5), r.uniform(0.2, 1, 5)],
    ),
    "inside another, over memory of its own": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        double kernel(int c, int n, const int *steps, const double *b) {
            double s = 0;
            for (int k = 0; k < c; k++) {
                double *x = malloc(8 * (n + k)), *y = calloc(n + k, 8);
                for (int i = 0; i < n + k; i++) x[i] = b[(i + k) % n];
                for (int t = 0; t < steps[k]; t++) {
                    for (int i = 0; i < n + k; i++) y[i] += x[i] + 0.1 * sin(x[(i + 1) % (n + k)]) - y[i];
                    double *z = x;
                    x = y;
                    y = z;
                }
                for (int i = 0; i < n + k; i++) s += x[i] * x[i] * (k + 1);
                free(x);
                free(y);
            }
            return s;
        }
        """,
        "c: i32, n: i32, steps: i32[c], b: f64[n] -> f64",
        {"c": 3, "n": 5},
        lambda r: [np.array([7, 40, 19], np.int32), r.uniform(0.2, 1, 5)],
    ),
    "rows that change places": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        double kernel(int n, int m, int steps, const double *b) {
            double **u = malloc(n * sizeof *u), **v = malloc(n * sizeof *v), s = 0;
            for (int i = 0; i < n; i++) {
                u[i] = malloc(8 * m);
                v[i] = calloc(m, 8);
                for (int j = 0; j < m; j++) u[i][j] = b[i * m + j];
            }
            for (int t = 0; t < steps; t++) {
                for (int i = 1; i < n - 1; i++)
                    for (int j = 1; j < m - 1; j++)
                        v[i][j] = u[i][j] + 0.1 * (sin(u[i - 1][j]) + u[i + 1][j] * u[i][j - 1] - u[i][j + 1]);
                double **w = u, *row = v[1];
                u = v;
                v = w;
                u[1] = u[2];
                u[2] = row;
            }
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < m; j++) s += u[i][j] * u[i][j];
                free(u[i]);
                free(v[i]);
            }
            free(u);
            free(v);
            return s;
        }
        """,
        "n: i32, m: i32, steps: i32, b: f64[n,m] -> f64",
        {"n": 5, "m": 4},
        lambda r: [np.int32(25), r.uniform(0.2, 1, (5, 4))],
    ),
    "a structure, memory for each step": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        typedef struct { int n; double *u, t, e; } State;
        static void step(State *s, double h) {
            double *w = malloc(8 * s->n);
            for (int i = 0; i < s->n; i++) w[i] = s->u[i] + h * sin(s->u[(i + 1) % s->n]) * s->t;
            for (int i = 0; i < s->n; i++) s->u[i] = w[i];
            free(w);
            s->t += h;
            s->e += s->u[0] * s->u[1];
        }
        double kernel(int n, double end, const double *x) {
            State s = {n, malloc(8 * n), 0, 0};
            for (int i = 0; i < n; i++) s.u[i] = x[i];
            while (s.t < end) step(&s, 0.05);
            double result = s.e + end;
            for (int i = 0; i < n; i++) result += s.u[i] * s.u[i];
            free(s.u);
            return result;
        }
        """,
        "n: i32, end: f64, x: f64[n] -> f64",
        {"n": 4},
        lambda r: [2.005, r.uniform(0.2, 1, 4)],
    ),
    "a linked list": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        typedef struct Node { double value; struct Node *next; } Node;
        double kernel(int n, int steps, const double *b) {
            Node *first = 0;
            for (int i = 0; i < n; i++) {
                Node *node = malloc(sizeof *node);
                *node = (Node){b[i], first};
                first = node;
            }
            for (int t = 0; t < steps; t++)
                for (Node *p = first; p->next; p = p->next) p->value += 0.1 * sin(p->next->value * p->value);
            double s = 0;
            while (first) {
                Node *next = first->next;
                s += first->value * first->value;
                free(first);
                first = next;
            }
            return s;
        }
        """,
        "n: i32, steps: i32, b: f64[n] -> f64",
        {"n": 5},
        lambda r: [np.int32(20), r.uniform(0.2, 1, 5)],
    ),
    "records of numbers and integers that change places": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        typedef struct { double x; long id; double y; int cell; } Particle;
        double kernel(int n, int steps, const double *b) {
            Particle *p = malloc(n * sizeof *p);
            int *count = calloc(5, sizeof *count);
            double s = 0;
            for (int i = 0; i < n; i++) p[i] = (Particle){b[i], i, 0.1 * i, 0};
            for (int t = 0; t < steps; t++)
                for (int i = 0; i < n; i++) {
                    Particle *q = p + i, held = *q;
                    q->x += 0.1 * sin(q->y);
                    q->y -= 0.1 * q->x * q->x;
                    q->cell = (q->id + t) % 5;
                    count[q->cell]++;
                    s += q->x * count[q->cell] * 1e-2 * held.y;
                    held = p[i];
                    p[i] = p[(i + 1) % n];
                    p[(i + 1) % n] = held;
                }
            for (int i = 0; i < n; i++) s += p[i].x * p[i].id + p[i].y;
            free(p);
            free(count);
            return s;
        }
        """,
        "n: i32, steps: i32, b: f64[n] -> f64",
        {"n": 4},
        lambda r: [np.int32(17), r.uniform(0.2, 1, 4)],
    ),
    "a structure whose buffers change places": Long(
        """
        #include <math.h>
        #include <stdlib.h>
        typedef struct { int n; double *u, *w; double t; } State;
        double kernel(int n, int steps, const double *b) {
            State s = {n, malloc(8 * n), malloc(8 * n), 0};
            for (int i = 0; i < n; i++) s.u[i] = b[i];
            for (int k = 0; k < steps; k++) {
                for (int i = 0; i < n; i++) s.w[i] = s.u[i] + 0.1 * sin(s.u[(i + 1) % n] * s.t);
                double *u = s.u;
                s.u = s.w;
                s.w = u;
                s.t += 0.1 * s.u[0];
            }
            double r = 0;
            for (int i = 0; i < n; i++) r += s.u[i] * s.u[i];
            free(s.u);
            free(s.w);
            return r * s.t;
        }
        """,
        "n: i32, steps: i32, b: f64[n] -> f64",
        {"n": 4},
        lambda r: [np.int32(15), r.uniform(0.2, 1, 4)],
    ),
    "complex numbers, two loops": Long(
        """
        #include <complex.h>
        double kernel(int n, int steps, double _Complex z, const double _Complex *c) {
            double s = 0;
            for (int t = 0; t < steps; t++) {
                z = 0.5 * z * z + c[t % n];
                if (cabs(z) > 2) break;
                s += creal(z) * cimag(z);
            }
            for (int t = 0; t < 2 * steps; t++) z += 0.01 * s * c[t % n] * z;
            return s * cabs(z);
        }
        """,
        "n: i32, steps: i32, z: c128, c: c128[n] -> f64",
        {"n": 4},
        lambda r: [np.int32(20), 0.1 + 0.2j, 0.2 * (r.normal(size=4) + 1j * r.normal(size=4))],
    ),
    "BLAS": Long(
        """
        #include <math.h>
        void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *,
                    const double *, const int *, const double *, double *, const int *);
        void kernel(int n, int steps, const double *a, double *x, double *y) {
            double alpha = 1, beta = 0.3;
            int one = 1;
            for (int t = 0; t < steps; t++) {
                dgemv_("N", &n, &n, &alpha, a, &n, x, &one, &beta, y, &one);
                for (int i = 0; i < n; i++) x[i] = tanh(y[i]);
            }
        }
        """,
        "n: i32, steps: i32, a: f64[n,n], inout x: f64[n], inout y: f64[n]",
        {"n": 4},
        lambda r: [np.int32(23), *(r.uniform(0.2, 1, shape) for shape in ((4, 4), 4, 4))],
    ),
    "recursion": Long(
        """
        #include <math.h>
        static double f(int d, double x) {
            return d == 0 ? sin(x) : 0.5 * f(d - 1, x * 0.9) + 0.4 * f(d - 1, x * 1.1) * x;
        }
        double kernel(int steps, int depth, double x) {
            for (int t = 0; t < steps; t++) x += 0.1 * f(depth, x);
            return x * x;
        }
        """,
        "steps: i32, depth: i32, x: f64 -> f64",
        {},
        lambda r: [np.int32(30), np.int32(3), 0.4],
    ),
    "vectors of C++": Long(
        """
        #include <cmath>
        #include <vector>
        extern "C" double kernel(int n, int steps, const double *b) {
            std::vector<double> u(b, b + n), w(n);
            double s = 0;
            for (int t = 0; t < steps; t++) {
                for (int i = 0; i < n; i++) w[i] = u[i] + 0.1 * std::sin(u[(i + 1) % n]);
                u.swap(w);
                s += u[0];
            }
            for (double x : u) s += x * x;
            return s;
        }
        """,
        "n: i32, steps: i32, b: f64[n] -> f64",
        {"n": 4},
        lambda r: [np.int32(20), r.uniform(0.2, 1, 4)],
        "c++",
    ),
}
