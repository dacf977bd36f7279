"""Kernels that call BLAS and LAPACK, through JAX, against the same in jax.numpy; second derivatives too."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

Function = Callable[..., jax.Array]

RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((2, 3, 3))
DEFINITE = A @ A.T + 3 * np.eye(3)

# Declared as many C programs do: int for no result, lengths of the character arguments at the end.
GEMM_DOT = """
int dgemm_(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *, double *, int *,
           long, long);
double ddot_(int *, double *, int *, double *, int *);
double f(double *a, double *b, double alpha) {
    double c[9], beta = 0;
    int n = 3, all = 9, one = 1;
    dgemm_("N", "T", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n, 1, 1);
    return ddot_(&all, c, &one, c, &one);
}"""

LIKELIHOOD = """
#include <math.h>
void dpotrf_(const char *, const int *, double *, const int *, int *);
void dtrsv_(const char *, const char *, const char *, const int *, const double *, const int *, double *, const int *);
double dnrm2_(const int *, const double *, const int *);
double f(const double *s, const double *b) {
    double l[9], x[3], sum = 0;
    int n = 3, one = 1, info;
    for (int i = 0; i < 9; i++) l[i] = s[i];
    for (int i = 0; i < 3; i++) x[i] = b[i];
    dpotrf_("L", &n, l, &n, &info);
    if (info != 0) return NAN;
    dtrsv_("L", "N", "N", &n, l, &n, x, &one);
    for (int i = 0; i < 3; i++) sum += log(l[4 * i]);
    double r = dnrm2_(&n, x, &one);
    return sum + r * r;
}"""

POWER = """
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *,
            const int *, const double *, double *, const int *);
double dnrm2_(const int *, const double *, const int *);
void dscal_(const int *, const double *, double *, const int *);
void dcopy_(const int *, const double *, const int *, double *, const int *);
double f(int steps, const double *a, const double *b) {
    double x[3], y[3], zero = 0, unit = 1, size = 0;
    int n = 3, one = 1;
    dcopy_(&n, b, &one, x, &one);
    for (int i = 0; i < steps; i++) {
        dgemv_("T", &n, &n, &unit, a, &n, x, &one, &zero, y, &one);
        size = dnrm2_(&n, y, &one);
        double factor = 1 / size;
        dscal_(&n, &factor, y, &one);
        dcopy_(&n, y, &one, x, &one);
    }
    return size;
}"""

SOLVE = """
#include <stdlib.h>
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
double f(const double *a, const double *b) {
    double *lu = malloc(9 * sizeof(double)), *x = malloc(9 * sizeof(double)), sum = 0, det = 1;
    int n = 3, info, *pivots = malloc(3 * sizeof(int));
    for (int i = 0; i < 9; i++) lu[i] = a[i], x[i] = b[i];
    dgesv_(&n, &n, lu, &n, pivots, x, &n, &info);
    for (int i = 0; i < 9; i++) sum += x[i] * x[i] * x[i];
    for (int i = 0; i < 3; i++) det *= pivots[i] == i + 1 ? lu[4 * i] : -lu[4 * i];
    free(lu);
    free(x);
    free(pivots);
    return sum * det;
}"""

C_INTERFACE = """
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
double cblas_dasum(int, const double *, int);
double f(const double *a, const double *b) {
    double c[9];
    for (int i = 0; i < 9; i++) c[i] = 1;
    cblas_dgemm(101, 111, 112, 3, 3, 3, 2.0, a, 3, b, 3, 1.0, c, 3);
    return cblas_dasum(9, c, 1) * c[4];
}"""

BANDED = """
void dgbsv_(const int *, const int *, const int *, const int *, double *, const int *, int *, double *, const int *,
            int *);
double f(const double *a, const double *b) {
    double lu[12], x[3];
    int n = 3, one = 1, four = 4, info, pivots[3];
    for (int j = 0; j < 3; j++) {
        x[j] = b[j];
        for (int i = 0; i < 3; i++)
            if (i - j < 2 && j - i < 2) lu[2 + i - j + 4 * j] = a[i + 3 * j];
    }
    dgbsv_(&n, &one, &one, &one, lu, &four, pivots, x, &n, &info);
    return (x[0] * x[1] + x[2] * x[2]) * lu[2 + 4];
}"""


def _banded(a: jax.Array, b: jax.Array) -> jax.Array:
    full = jnp.triu(jnp.tril(a.T, 1), -1)
    x = jnp.linalg.solve(full, b)
    return (x[0] * x[1] + x[2] ** 2) * jax.scipy.linalg.lu(full)[2][1, 1]


def _power(a: jax.Array, x: jax.Array) -> jax.Array:
    for _ in range(7):
        y = a @ x
        x = y / jnp.linalg.norm(y)
    return jnp.linalg.norm(y)


def _likelihood(s: jax.Array, b: jax.Array) -> jax.Array:
    full = jnp.triu(s) + jnp.triu(s, 1).T
    return 0.5 * jnp.linalg.slogdet(full)[1] + b @ jnp.linalg.solve(full, b)


def _c_interface(a: jax.Array, b: jax.Array) -> jax.Array:
    c = 2 * a @ b.T + 1
    return jnp.abs(c).sum() * c[1, 1]


CASES: dict[str, tuple[str, str, Function, tuple[object, ...]]] = {
    "gemm and dot": (
        GEMM_DOT,
        "a: f64[3,3], b: f64[3,3], alpha: f64 -> f64",
        lambda a, b, alpha: jnp.sum((alpha * a.T @ b) ** 2),
        (A, B, 1.3),
    ),
    "likelihood": (LIKELIHOOD, "s: f64[3,3], b: f64[3] -> f64", _likelihood, (DEFINITE, B[0])),
    "power iteration": (POWER, "steps: i32, a: f64[3,3], b: f64[3] -> f64", _power, (A, B[0])),
    "solve": (
        SOLVE,
        "a: f64[3,3], b: f64[3,3] -> f64",
        lambda a, b: jnp.sum(jnp.linalg.solve(a.T, b.T) ** 3) * jnp.linalg.det(a),
        (A, B),
    ),
    "banded": (BANDED, "a: f64[3,3], b: f64[3] -> f64", _banded, (A, B[0])),
    "C interface": (C_INTERFACE, "a: f64[3,3], b: f64[3,3] -> f64", _c_interface, (A, B)),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    source, signature, reference, values = CASES[name]
    kernel = je.kernel(source, "f", signature, lang="c")
    given = tuple(jnp.asarray(v) for v in values)

    def call(*arguments: jax.Array) -> jax.Array:
        return kernel(7, *arguments) if name == "power iteration" else kernel(*arguments)

    everything = tuple(range(len(given)))
    np.testing.assert_allclose(call(*given), reference(*given), rtol=1e-12)
    direction = tuple(jnp.cos(3 * v + 1) for v in given)
    _close(jax.jvp(call, given, direction)[1], jax.jvp(reference, given, direction)[1])
    ours, theirs = jax.grad(call, everything), jax.grad(reference, everything)
    _close(ours(*given), theirs(*given))
    _close(jax.jvp(ours, given, direction)[1], jax.jvp(theirs, given, direction)[1])


def _close(found: object, expected: object) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 + 1e-9 * np.abs(b).max())


COMPLEX = """
#include <complex.h>
double complex zdotc_(const int *, const double complex *, const int *, const double complex *, const int *);
void zgemv_(const char *, const int *, const int *, const double complex *, const double complex *, const int *,
            const double complex *, const int *, const double complex *, double complex *, const int *);
void f(const double complex *a, const double complex *x, double complex *out) {
    double complex y[3], alpha = 2 + I, beta = 0;
    int n = 3, one = 1;
    zgemv_("C", &n, &n, &alpha, a, &n, x, &one, &beta, y, &one);
    *out = zdotc_(&n, x, &one, y, &one);
}"""


def test_complex_numbers() -> None:
    kernel = je.kernel(COMPLEX, "f", "a: c128[3,3], x: c128[3], out y: c128[]", lang="c")

    def reference(a: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.vdot(x, (2 + 1j) * (jnp.conj(a) @ x))

    given = jnp.asarray(A + 1j * B), jnp.asarray(B[0] - 1j * A[1])
    np.testing.assert_allclose(kernel(*given), reference(*given), rtol=1e-12)
    tangents = given[0] * (1 - 2j), given[1] * 1j
    _close(jax.jvp(kernel, given, tangents), jax.jvp(reference, given, tangents))
    _close(jax.vjp(kernel, *given)[1](jnp.asarray(0.3 - 0.8j)), jax.vjp(reference, *given)[1](jnp.asarray(0.3 - 0.8j)))


def test_a_routine_without_a_rule_is_refused_by_name() -> None:
    source = """
    void dgebrd_(const int *, const int *, double *, const int *, double *, double *, double *, double *, double *,
                 const int *, int *);
    double f(const double *a) {
        double b[4], d[2], e[2], p[2], q[2], work[64];
        int n = 2, size = 64, info;
        for (int i = 0; i < 4; i++) b[i] = a[i];
        dgebrd_(&n, &n, b, &n, d, e, p, q, work, &size, &info);
        return d[0];
    }"""
    kernel = je.kernel(source, "f", "a: f64[2,2] -> f64", lang="c")
    a = jnp.asarray([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(kernel(a), 1.0)
    with pytest.raises(je.NoRuleError, match="dgebrd_"):
        jax.grad(kernel)(a)
