"""LAPACK on banded and tridiagonal matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rules.blas import cases
from tests.rules.blas.checks import check, check_subsets, cotangents, tangents
from tests.rules.blas.test_levels import Rng, letters
from tests.support.engine import agree, native, three_way

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
