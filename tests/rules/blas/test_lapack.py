"""LAPACK: factorisations and solvers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.rules.blas.arrays import Array, Numbers, matrix
from tests.rules.blas.checks import Case, check, check_subsets, cotangents, tangents
from tests.rules.blas.test_levels import LETTERS, triangular


def _well_posed(rng: np.random.Generator, m: int, n: int, ld: int, dtype: np.dtype) -> Numbers:
    """A matrix whose pivots lie off the diagonal, and far from a tie."""
    a = matrix(rng, m, n, ld, dtype)
    k = min(m, n)
    a.values[np.arange(k) * ld + np.roll(np.arange(k), 1)] += 5
    return a


def _square(a: Numbers, n: int, ld: int) -> Array:
    return a.values[: n * ld].reshape(n, ld).T[:n]


def _definite(rng: np.random.Generator, n: int, ld: int, dtype: np.dtype, uplo: str) -> Numbers:
    a = matrix(rng, n, n, ld, dtype, uplo)
    at = np.arange(n) * (ld + 1)
    a.values[at] = a.values[at].real + 2 * n
    return a


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("uplo", "UL")
def test_potrf(letter: str, uplo: str, n: int, rng: np.random.Generator) -> None:
    a = _definite(rng, n, n + 2, LETTERS[letter], uplo)
    case = Case(f"{letter}potrf_", {"uplo": uplo, "n": n, "a": a, "lda": n + 2, "info": 0})
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", "UL")
def test_failed_potrf_has_no_derivative(letter: str, uplo: str, rng: np.random.Generator) -> None:
    a = _definite(rng, 3, 3, LETTERS[letter], uplo)
    a.values[4] = -1
    case = Case(f"{letter}potrf_", {"uplo": uplo, "n": 3, "a": a, "lda": 3, "info": 0})
    assert np.isnan(tangents(case, {"a": a.like(1.0)})["a"]).all()
    assert np.isnan(cotangents(case, {"a": a.like(1.0)}, 0.0, 0)["a"]).any()
    assert not cotangents(case, {"a": a.like(0.0)}, 0.0, 0)["a"].any(), "what was not used has a derivative: zero"


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("n", "nrhs"), [(1, 1), (4, 3), (0, 2), (3, 0)])
@pytest.mark.parametrize("uplo", "UL")
def test_potrs(letter: str, uplo: str, n: int, nrhs: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"uplo": uplo, "n": n, "nrhs": nrhs, "a": triangular(rng, n, n + 2, dtype, uplo, "N"), "lda": n + 2}
    values |= {"b": matrix(rng, n, nrhs, n + 1, dtype), "ldb": n + 1, "info": 0}
    case = Case(f"{letter}potrs_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (5, 3), (3, 5), (1, 3), (3, 1), (0, 2), (2, 0)])
def test_getrf(letter: str, m: int, n: int, rng: np.random.Generator) -> None:
    a = _well_posed(rng, m, n, m + 2, LETTERS[letter])
    values = {"m": m, "n": n, "a": a, "lda": m + 2, "ipiv": np.zeros(max(1, min(m, n))), "info": 0}
    case = Case(f"{letter}getrf_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("n", "nrhs"), [(1, 1), (4, 3), (0, 2), (3, 0)])
@pytest.mark.parametrize("trans", "NTc")
def test_getrs(letter: str, trans: str, n: int, nrhs: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    factors = matrix(rng, n, n, n + 2, dtype)
    factors.values[np.arange(n) * (n + 3)] += 4
    pivots = np.minimum(np.arange(n) + 2, n) if n else np.zeros(1)
    values = {"trans": trans, "n": n, "nrhs": nrhs, "a": factors, "lda": n + 2, "ipiv": pivots, "info": 0}
    case = Case(f"{letter}getrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, dtype), "ldb": n + 1})
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("n", "nrhs"), [(1, 1), (4, 3), (0, 2), (3, 0)])
def test_gesv(letter: str, n: int, nrhs: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"n": n, "nrhs": nrhs, "a": _well_posed(rng, n, n, n + 2, dtype), "lda": n + 2, "info": 0}
    values |= {"ipiv": np.zeros(max(1, n)), "b": matrix(rng, n, nrhs, n + 1, dtype), "ldb": n + 1}
    check(Case(f"{letter}gesv_", values), rng)
    check(Case(f"{letter}gesv_", values, frozenset({"a"})), rng)
    check(Case(f"{letter}gesv_", values, frozenset({"b"})), rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("n", "nrhs"), [(1, 1), (4, 3), (0, 2), (3, 0)])
@pytest.mark.parametrize(("uplo", "trans", "diag"), list(itertools.product("UL", "NTC", "UN")))
def test_trtrs(letter: str, uplo: str, trans: str, diag: str, n: int, nrhs: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"uplo": uplo, "trans": trans, "diag": diag, "n": n, "nrhs": nrhs, "lda": n + 2, "ldb": n + 1, "info": 0}
    values |= {"a": triangular(rng, n, n + 2, dtype, uplo, diag), "b": matrix(rng, n, nrhs, n + 1, dtype)}
    case = Case(f"{letter}trtrs_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
def test_trtrs_of_a_singular_matrix_leaves_everything(letter: str, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"uplo": "L", "trans": "N", "diag": "N", "n": 2, "nrhs": 1, "lda": 2, "ldb": 2, "info": 0}
    values |= {"a": triangular(rng, 2, 2, dtype, "L", "N"), "b": matrix(rng, 2, 1, 2, dtype)}
    values["a"].values[3] = 0
    case = Case(f"{letter}trtrs_", values)
    seeds = {"b": case.numbers("b").like(np.array([2, 3], dtype))}
    np.testing.assert_array_equal(tangents(case, {"a": case.numbers("a").like(1.0), **seeds})["b"], [2, 3])
    found = cotangents(case, seeds, 0.0, 0)
    np.testing.assert_array_equal(found["b"], [2, 3])
    assert not found["a"].any()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("incx", [1, -1, 2])
def test_laswp(letter: str, incx: int, rng: np.random.Generator) -> None:
    values = {"n": 3, "a": matrix(rng, 5, 3, 6, LETTERS[letter]), "lda": 6, "k1": 2, "k2": 4, "incx": incx}
    check(Case(f"{letter}laswp_", {**values, "ipiv": np.array([9, 4, 3, 5, 9, 5, 9, 9])}), rng)
