"""Routines that are special cases of others: their numbers are NumPy's, and their derivatives agree three ways."""

from __future__ import annotations

import numpy as np

from tests.support.engine import Native, agree, native
from tests.support.engine import one_way as three_way

N = 4
_DECLARATIONS = """
#include <complex.h>
typedef double _Complex z;
void dsyr_(const char *, const int *, const double *, const double *, const int *, double *, const int *);
void dsyr2_(const char *, const int *, const double *, const double *, const int *, const double *, const int *,
            double *, const int *);
void cblas_dsyr(int, int, int, double, const double *, int, double *, int);
void zher_(const char *, const int *, const double *, const z *, const int *, z *, const int *);
void zher2_(const char *, const int *, const z *, const z *, const int *, const z *, const int *, z *, const int *);
void cblas_zher(int, int, int, double, const void *, int, void *, int);
void cblas_zher2(int, int, int, const void *, const void *, int, const void *, int, void *, int);
double dsdot_(const int *, const float *, const int *, const float *, const int *);
float sdsdot_(const int *, const float *, const float *, const int *, const float *, const int *);
void dposv_(const char *, const int *, const int *, double *, const int *, double *, const int *, int *);
"""
_SYMMETRIC = """
void k(int n, const double *x, const double *y, double *a) {
    int back = -1, one = 1, ld = n + 1;
    double alpha = 0.7, beta = 1.3;
    dsyr_("u", &n, &alpha, x, &back, a, &ld);
    dsyr2_("L", &n, &beta, x, &one, y, &back, a, &ld);
    cblas_dsyr(101, 121, n, 0.3, y, 1, a, ld);
}
"""
_HERMITIAN = """
void k(int n, const z *x, const z *y, z *a) {
    int back = -1, one = 1;
    double alpha = 0.7;
    z beta = 0.3 + 0.4 * I;
    zher_("U", &n, &alpha, x, &back, a, &n);
    zher2_("L", &n, &beta, x, &one, y, &back, a, &n);
    cblas_zher(101, 122, n, 0.3, y, 1, a, n);
    cblas_zher2(101, 121, n, &beta, x, 1, y, 1, a, n);
}
"""
_DOTS = """
double k(int n, const float *x, const float *y) {
    int back = -1, one = 1;
    float start = 2;
    return dsdot_(&n, x, &back, y, &one) * sdsdot_(&n, &start, x, &one, y, &one);
}
"""
_SOLVE = """
void k(int n, double *a, double *b) {
    int one = 1, info;
    dposv_("l", &n, &one, a, &n, b, &n, &info);
}
"""


def kernel(source: str, signature: str) -> Native:
    return native(_DECLARATIONS + source, "k", signature, {"n": N})


def test_symmetric_updates() -> None:
    r = np.random.default_rng(0)
    x, y, a = r.normal(size=N), r.normal(size=N), r.normal(size=(N, N + 1))
    subject = kernel(_SYMMETRIC, "n: i32, x: f64[n], y: f64[n], inout a: f64[n,n+1]")
    expected = a.T.copy()
    expected[:N] += np.triu(0.7 * np.outer(x[::-1], x[::-1])) + np.tril(0.3 * np.outer(y, y))
    expected[:N] += np.tril(1.3 * (np.outer(x, y[::-1]) + np.outer(y[::-1], x)))
    (found,) = subject.run((), [x, y, a])
    np.testing.assert_allclose(found.T, expected)
    agree(three_way(subject, [x, y, a]))


def test_hermitian_updates() -> None:
    r = np.random.default_rng(1)
    x, y, a = (r.normal(size=s) + 1j * r.normal(size=s) for s in (N, N, (N, N)))
    a = a + np.conj(a.T)
    subject = kernel(_HERMITIAN, "n: i32, x: c128[n], y: c128[n], inout a: c128[n,n]")
    beta = 0.3 + 0.4j
    columns = a.T + np.triu(0.7 * np.outer(x[::-1], np.conj(x[::-1])))
    columns += np.tril(beta * np.outer(x, np.conj(y[::-1])) + np.conj(beta) * np.outer(y[::-1], np.conj(x)))
    expected = columns.T + np.tril(0.3 * np.outer(y, np.conj(y)))
    expected += np.triu(beta * np.outer(x, np.conj(y)) + np.conj(beta) * np.outer(y, np.conj(x)))
    (found,) = subject.run((), [x, y, a])
    np.testing.assert_allclose(found, expected, atol=1e-14)
    agree(three_way(subject, [x, y, a]))


def test_sums_in_double_precision() -> None:
    r = np.random.default_rng(2)
    x, y = r.normal(size=N).astype(np.float32), r.normal(size=N).astype(np.float32)
    subject = kernel(_DOTS, "n: i32, x: f32[n], y: f32[n] -> f64")
    (found,) = subject.run((), [x, y])
    np.testing.assert_allclose(found, (x[::-1] @ y) * (2 + x @ y), rtol=1e-5)
    agree(three_way(subject, [x, y], step=1e-4), 1e-6, 1e-3)


def test_a_positive_definite_system() -> None:
    r = np.random.default_rng(3)
    m, b = r.normal(size=(N, N)), r.normal(size=N)
    a = m @ m.T + N * np.eye(N)
    subject = kernel(_SOLVE, "n: i32, inout a: f64[n,n], inout b: f64[n]")
    np.testing.assert_allclose(subject.run((), [a, b])[1], np.linalg.solve(a, b))
    agree(three_way(subject, [a, b]))


def test_lengths_of_characters_may_follow() -> None:
    source = (
        "void dsyr_(const char *, const int *, const double *, const double *, const int *, double *, const int *,"
        " long);\n"
        "void k(int n, const double *x, double *a) {\n  int one = 1;\n  double alpha = 0.5;\n"
        '  dsyr_("U", &n, &alpha, x, &one, a, &n, 1);\n}'
    )
    r = np.random.default_rng(4)
    subject = native(source, "k", "n: i32, x: f64[n], inout a: f64[n,n]", {"n": N})
    agree(three_way(subject, [r.normal(size=N), r.normal(size=(N, N))]))


def test_memory_that_nobody_but_routines_writes_is_copied() -> None:
    source = (
        "#include <stdlib.h>\n#include <string.h>\nvoid dscal_(const int *, const double *, double *, const int *);\n"
        "void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *,\n"
        "            const double *, const int *, const double *, double *, const int *);\n"
        "void k(int n, const double *a, const double *x, double *y) {\n"
        "  int one = 1;\n  double alpha = 1, none = 0;\n"
        "  double *t = malloc(n * sizeof *t), *u = malloc(n * sizeof *u);\n"
        '  dgemv_("N", &n, &n, &alpha, a, &n, x, &one, &none, t, &one);\n'
        "  memcpy(u, t, n * sizeof *u);\n  dscal_(&n, x, u, &one);\n"
        '  dgemv_("T", &n, &n, &alpha, a, &n, u, &one, &none, y, &one);\n'
        "  free(t);\n  free(u);\n}"
    )
    r = np.random.default_rng(5)
    a, x = r.normal(size=(N, N)), r.normal(size=N)
    subject = native(source, "k", "n: i32, a: f64[n,n], x: f64[n], out y: f64[n]", {"n": N})
    np.testing.assert_allclose(subject.run((), [a, x])[0], a @ (x[0] * a.T @ x))
    agree(three_way(subject, [a, x]))


def test_an_index_may_be_declared_as_int() -> None:
    source = (
        "int cblas_idamax(int, const double *, int);\n"
        "double k(int n, const double *x) {\n  int i = cblas_idamax(n, x, 1);\n  return x[i] * x[i] + i;\n}"
    )
    x = np.array([0.3, -2.0, 1.2, 0.9])
    subject = native(source, "k", "n: i32, x: f64[n] -> f64", {"n": N})
    assert subject.run((), [x])[0] == 5
    agree(three_way(subject, [x]))
