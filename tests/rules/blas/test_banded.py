"""LAPACK on banded and tridiagonal matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je
from tests.rules.blas import cases
from tests.rules.blas.checks import check, check_subsets, cotangents, tangents
from tests.rules.blas.test_levels import Rng, letters
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

sides = pytest.mark.parametrize("uplo", ["U", "L"])


@letters
@pytest.mark.parametrize(
    ("m", "n", "kl", "ku"),
    [(5, 5, 2, 1), (6, 6, 1, 2), (4, 4, 0, 1), (4, 4, 2, 0), (6, 4, 1, 1), (3, 5, 1, 1), (1, 1, 0, 0)],
)
def test_gbtrf(letter: str, m: int, n: int, kl: int, ku: int, rng: Rng) -> None:
    case = cases.gbtrf(rng, letter, m, n, kl, ku)
    check(case, rng)
    check_subsets(case, rng)


@letters
@pytest.mark.parametrize("trans", ["N", "T", "c"])
@pytest.mark.parametrize(
    ("n", "nrhs", "kl", "ku"), [(6, 2, 2, 1), (5, 1, 0, 1), (4, 3, 1, 0), (1, 1, 1, 1), (0, 2, 1, 1)]
)
def test_gbtrs(letter: str, trans: str, n: int, nrhs: int, kl: int, ku: int, rng: Rng) -> None:
    case = cases.gbtrs(rng, letter, trans, n, nrhs, kl, ku)
    check(case, rng)
    check_subsets(case, rng)


@letters
@sides
@pytest.mark.parametrize(("n", "kd"), [(5, 2), (4, 0), (2, 3), (0, 1)])
def test_pbtrf(letter: str, uplo: str, n: int, kd: int, rng: Rng) -> None:
    case = cases.pbtrf(rng, letter, uplo, n, kd)
    check(case, rng)
    check_subsets(case, rng)


@letters
@sides
@pytest.mark.parametrize(("n", "nrhs", "kd"), [(5, 2, 2), (4, 1, 0), (2, 2, 3), (0, 1, 1)])
def test_pbtrs(letter: str, uplo: str, n: int, nrhs: int, kd: int, rng: Rng) -> None:
    case = cases.pbtrs(rng, letter, uplo, n, nrhs, kd)
    check(case, rng)
    check_subsets(case, rng)


@sides
def test_a_failed_pbtrf_has_no_derivative(uplo: str, rng: Rng) -> None:
    case = cases.pbtrf(rng, "d", uplo, 4, 1)
    a = case.numbers("a")
    a.values[a.real] = -1
    assert np.isnan(tangents(case, {"a": a.like(1.0)})["a"]).all()
    assert np.isnan(cotangents(case, {"a": a.like(1.0)}, 0.0, 0)["a"]).any()
    assert not cotangents(case, {"a": a.like(0.0)}, 0.0, 0)["a"].any(), "what was not used has a derivative: zero"


_TRIDIAGONAL = """
void dgttrf_(const int *, double *, double *, double *, double *, int *, int *);
void dgttrs_(const char *, const int *, const int *, const double *, const double *, const double *, const double *,
             const int *, double *, const int *, int *);
void dgtsv_(const int *, const int *, double *, double *, double *, double *, const int *, int *);
void dptsv_(const int *, const int *, double *, double *, double *, const int *, int *);
void k(int n, double *dl, double *d, double *du, double *b) {
    double l[8], m[8], u[8], u2[8], e[8], one_more[8];
    int one = 1, two = 2, info, pivots[8];
    for (int i = 0; i < n; i++) l[i] = dl[i], m[i] = d[i], u[i] = du[i], e[i] = 0.1 * du[i], one_more[i] = 30 + d[i];
    dgttrf_(&n, l, m, u, u2, pivots, &info);
    dgttrs_("T", &n, &two, l, m, u, u2, pivots, b, &n, &info);
    dgttrs_("N", &n, &one, l, m, u, u2, pivots, b, &n, &info);
    dptsv_(&n, &one, one_more, e, b + n, &n, &info);
    dgtsv_(&n, &two, dl, d, du, b, &n, &info);
}
"""


def test_tridiagonal_systems() -> None:
    """Some rows are exchanged, some are not."""
    n, r = 5, np.random.default_rng(5)
    dl, d, du, b = (r.normal(size=s) + k for s, k in ((n - 1, 1), (n, 0), (n - 1, 2), ((2, n), 0)))
    d[::2] += 9
    signature = "n: i32, inout dl: f64[n-1], inout d: f64[n], inout du: f64[n-1], inout b: f64[2,n]"
    subject = native(_TRIDIAGONAL, "k", signature, {"n": n})
    full = np.diag(d) + np.diag(dl, -1) + np.diag(du, 1)
    other = np.diag(30 + d) + np.diag(0.1 * du, -1) + np.diag(0.1 * du, 1)
    x = np.linalg.solve(full.T, b.T)
    middle = np.stack([np.linalg.solve(full, x[:, 0]), np.linalg.solve(other, x[:, 1])])
    np.testing.assert_allclose(subject.run((), [dl, d, du, b])[-1], np.linalg.solve(full, middle.T).T)
    agree(three_way(subject, [dl, d, du, b]))


_STORED = """
void dpptrf_(const char *, const int *, double *, int *);
void dppsv_(const char *, const int *, const int *, double *, double *, const int *, int *);
void zppsv_(const char *, const int *, const int *, double *, double *, const int *, int *);
void dtptrs_(const char *, const char *, const char *, const int *, const int *, const double *, double *, const int *,
             int *);
void dtbtrs_(const char *, const char *, const char *, const int *, const int *, const int *, const double *,
             const int *, double *, const int *, int *);
double dlange_(const char *, const int *, const int *, const double *, const int *, double *);
static int one = 1, two = 2, info;
void positive(int n, double *a, double *b) { dppsv_("UPLO", &n, &two, a, b, &n, &info); }
void complex_positive(int n, double *a, double *b) { zppsv_("UPLO", &n, &two, a, b, &n, &info); }
void triangle(int n, double *a, double *b) { dtptrs_("UPLO", "T", "N", &n, &two, a, b, &n, &info); }
void band(int n, double *a, double *b) { dtbtrs_("UPLO", "N", "N", &n, &one, &two, a, &two, b, &n, &info); }
void norms(int n, double *a, double *b) {
    const char *which = "M1IF";
    for (int i = 0; i < 4; i++) b[i] *= dlange_(which + i, &n, &two, a, &n, 0);
}
void fails(int n, double *a, double *b) { dpptrf_("UPLO", &n, a, &info); b[0] = info; }
"""


@pytest.mark.parametrize(("name", "uplo"), [("positive", "L"), ("complex_positive", "U"), ("triangle", "U")])
def test_packed_triangles(name: str, uplo: str) -> None:
    """Against NumPy, and the derivatives by each other and differences."""
    n, r = 3, np.random.default_rng(3)
    above, b = uplo == "U", r.normal(size=(2, n))
    full, imaginary = r.normal(size=(2, n, n))
    if name == "complex_positive":
        full, b = full + 1j * imaginary, b + 1j * b[::-1]
    matrix = full @ full.conj().T + n * np.eye(n)
    if name == "triangle":
        matrix = (np.triu if above else np.tril)(full).T + 3 * np.eye(n)
    stored = matrix.T if name == "triangle" else matrix
    a = np.array([stored[i, j] for j in range(n) for i in (range(j + 1) if above else range(j, n))])
    width = 2 if b.dtype == complex else 1
    signature = f"n: i32, inout a: f64[{width}*n*(n+1)/2], inout b: f64[2,{width}*n]"
    kernel = native(_STORED.replace("UPLO", uplo), name, signature, {"n": n})
    given = [a.view(float).copy(), b.view(float).copy()]
    np.testing.assert_allclose(kernel.run((), given)[-1].view(b.dtype), np.linalg.solve(matrix, b.T).T)
    agree(three_way(kernel, given))


def test_norms_and_packed_matrices_that_are_not_positive() -> None:
    n, a = 3, np.random.default_rng(3).normal(size=(2, 3))
    norms = native(_STORED, "norms", "n: i32, inout a: f64[2,n], inout b: f64[4]", {"n": n})
    expected = [abs(a).max(), *(np.linalg.norm(a.T, kind) for kind in (1, np.inf, "fro"))]
    np.testing.assert_allclose(norms.run((), [a, np.ones(4)])[-1], expected)
    agree(three_way(norms, [a, np.ones(4)]))
    # The norm of Frobenius is smooth where a column is zero.
    norm = je.kernel(_STORED + "double norm(int n, double *a) { return dlange_(\"f\", &n, &two, a, &n, 0); }", "norm",
                     "n: i32, a: f64[2,n] -> f64", lang="c")  # fmt: skip
    a[1] = 0
    np.testing.assert_allclose(jax.hessian(norm)(a), jax.hessian(lambda a: jnp.sqrt((a * a).sum()))(a), atol=1e-12)
    fails = native(_STORED.replace("UPLO", "U"), "fails", "n: i32, inout a: f64[6], inout b: f64[1]", {"n": n})
    assert fails.run((), [np.array([4.0, 0, -1, 0, 0, 2]), np.zeros(1)])[-1] == 2


@sides
def test_tbtrs(uplo: str) -> None:
    n, r = 4, np.random.default_rng(4)
    main, beside, b = r.normal(size=n) + 3, r.normal(size=n - 1), r.normal(size=(2, n))
    rows = ([0, *beside], main) if uplo == "U" else (main, [*beside, 0])
    matrix = np.diag(main) + np.diag(beside, 1 if uplo == "U" else -1)
    source = _STORED.replace("UPLO", uplo)
    kernel = native(source, "band", "n: i32, inout a: f64[n,2], inout b: f64[2,n]", {"n": n})
    a = np.stack([np.array(row, float) for row in rows], 1)
    np.testing.assert_allclose(kernel.run((), [a, b])[-1], np.linalg.solve(matrix, b.T).T)
    agree(three_way(kernel, [a, b]))
