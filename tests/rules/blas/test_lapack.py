"""LAPACK: factorisations and solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.rules.blas import cases
from tests.rules.blas.checks import check, check_subsets, cotangents, tangents
from tests.rules.blas.test_levels import TRIANGLES, Rng, letters

sizes = pytest.mark.parametrize(("n", "nrhs"), [(1, 1), (4, 3), (0, 2), (3, 0)])
sides = pytest.mark.parametrize("uplo", ["U", "L"])


@letters
@pytest.mark.parametrize("n", [0, 1, 5])
@sides
def test_potrf(letter: str, uplo: str, n: int, rng: Rng) -> None:
    case = cases.potrf(rng, letter, uplo, n)
    check(case, rng)
    check_subsets(case, rng)


@letters
@sides
def test_failed_potrf_has_no_derivative(letter: str, uplo: str, rng: Rng) -> None:
    case = cases.potrf(rng, letter, uplo, 3)
    a = case.numbers("a")
    a.values[6] = -1
    assert np.isnan(tangents(case, {"a": a.like(1.0)})["a"]).all()
    assert np.isnan(cotangents(case, {"a": a.like(1.0)}, 0.0, 0)["a"]).any()
    assert not cotangents(case, {"a": a.like(0.0)}, 0.0, 0)["a"].any(), "what was not used has a derivative: zero"


@letters
@sizes
@sides
def test_potrs(letter: str, uplo: str, n: int, nrhs: int, rng: Rng) -> None:
    case = cases.potrs(rng, letter, uplo, n, nrhs)
    check(case, rng)
    check_subsets(case, rng)


@letters
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (5, 3), (3, 5), (1, 3), (3, 1), (0, 2), (2, 0)])
def test_getrf(letter: str, m: int, n: int, rng: Rng) -> None:
    case = cases.getrf(rng, letter, m, n)
    check(case, rng)
    check_subsets(case, rng)


@letters
@sizes
@pytest.mark.parametrize("trans", ["N", "T", "c"])
def test_getrs(letter: str, trans: str, n: int, nrhs: int, rng: Rng) -> None:
    case = cases.getrs(rng, letter, trans, n, nrhs)
    check(case, rng)
    check_subsets(case, rng)


@letters
@sizes
def test_gesv(letter: str, n: int, nrhs: int, rng: Rng) -> None:
    case = cases.gesv(rng, letter, n, nrhs)
    check(case, rng)
    check(replace(case, inactive=frozenset({"a"})), rng)
    check(replace(case, inactive=frozenset({"b"})), rng)


@letters
@sizes
@pytest.mark.parametrize(("uplo", "trans", "diag"), TRIANGLES)
def test_trtrs(letter: str, uplo: str, trans: str, diag: str, n: int, nrhs: int, rng: Rng) -> None:
    case = cases.trtrs(rng, letter, uplo, trans, diag, n, nrhs)
    check(case, rng)
    check_subsets(case, rng)


@letters
def test_trtrs_of_a_singular_matrix_leaves_everything(letter: str, rng: Rng) -> None:
    case = cases.trtrs(rng, letter, "L", "N", "N", 2, 1)
    case.numbers("a").values[5] = 0
    seeds = {"b": case.numbers("b").like(np.array([2, 3]))}
    np.testing.assert_array_equal(tangents(case, {"a": case.numbers("a").like(1.0), **seeds})["b"], [2, 3])
    found = cotangents(case, seeds, 0.0, 0)
    np.testing.assert_array_equal(found["b"], [2, 3])
    assert not found["a"].any()


@letters
@pytest.mark.parametrize("incx", [1, -1, 2])
def test_laswp(letter: str, incx: int, rng: Rng) -> None:
    check(cases.laswp(rng, letter, incx), rng)


@pytest.mark.parametrize(
    ("letter", "fact", "trans"),
    [("d", "N", "N"), ("d", "N", "T"), ("d", "E", "N"), ("d", "F", "T"), ("s", "N", "N"), ("z", "N", "C"),
     ("z", "N", "T"), ("z", "E", "N"), ("d", "N", "L"), ("d", "E", "U"), ("d", "F", "L"), ("z", "N", "U")],
)  # fmt: skip
def test_solutions_with_estimates(letter: str, fact: str, trans: str, rng: Rng) -> None:
    check(cases.gesvx(rng, letter, fact, trans), rng)


def test_factors_and_estimates_have_no_derivative(rng: Rng) -> None:
    case = cases.gesvx(rng, "d")
    found = tangents(case, {n: case.numbers(n).like(1.0) for n in case.floats})
    assert np.isnan(found["af"]).all()
    assert np.isnan(found["rcond"]).all()
    assert np.isnan(cotangents(case, {"rcond": np.ones(1)}, 0.0, 0)["a"]).all()
