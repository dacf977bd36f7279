"""BLAS: every routine, with all flags, strides of both signs, gaps, and special scalars."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.rules.blas.arrays import matrix, scalar, vector
from tests.rules.blas.checks import Case, check, check_subsets

LETTERS = {"d": np.dtype(np.float64)}
STRIDES = [(1, 1), (2, -3), (-1, 2), (-2, -1)]
SCALARS = [(1.3, 0.7), (0.0, 0.7), (1.3, 0.0), (1.0, 1.0)]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("incx", "incy"), STRIDES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("name", ["dot", "axpy", "copy", "swap", "rot"])
def test_two_vectors(letter: str, name: str, n: int, incx: int, incy: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"n": n, "x": vector(rng, n, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    values |= {"alpha": scalar(-0.6, dtype), "c": scalar(0.8, dtype), "s": scalar(0.6, dtype)}
    case = Case(f"{letter}{name}_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("name", "incx", "incy"), [("axpy", 0, 2), ("axpy", 1, 0), ("copy", 0, -1), ("dot", 0, 1)])
def test_stride_of_zero(letter: str, name: str, incx: int, incy: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"n": 4, "x": vector(rng, 4, incx, dtype), "incx": incx, "y": vector(rng, 4, incy, dtype), "incy": incy}
    check(Case(f"{letter}{name}_", {**values, "alpha": scalar(-0.6, dtype)}), rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("incx", [1, 3, -2])
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("name", ["scal", "nrm2", "asum"])
def test_one_vector(letter: str, name: str, n: int, incx: int, rng: np.random.Generator) -> None:
    dtype = LETTERS[letter]
    values = {"n": n, "x": vector(rng, n, incx, dtype), "incx": incx, "alpha": scalar(-0.6, dtype)}
    case = Case(f"{letter}{name}_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
@pytest.mark.parametrize(("incx", "incy"), STRIDES)
@pytest.mark.parametrize(("m", "n"), [(3, 5), (4, 2), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("trans", "NTct")
def test_gemv(letter, trans, m, n, incx, incy, alpha, beta, rng) -> None:
    dtype = LETTERS[letter]
    rows, columns = (m, n) if trans == "N" else (n, m)
    values = {"trans": trans, "m": m, "n": n, "alpha": scalar(alpha, dtype), "beta": scalar(beta, dtype)}
    values |= {"a": matrix(rng, m, n, m + 2, dtype), "lda": m + 2}
    values |= {"x": vector(rng, columns, incx, dtype), "incx": incx}
    values |= {"y": vector(rng, rows, incy, dtype), "incy": incy}
    case = Case(f"{letter}gemv_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("incx", "incy"), STRIDES)
@pytest.mark.parametrize(("m", "n"), [(3, 5), (4, 2), (0, 3), (3, 0)])
def test_ger(letter, m, n, incx, incy, rng) -> None:
    dtype = LETTERS[letter]
    values = {"m": m, "n": n, "alpha": scalar(1.3, dtype), "a": matrix(rng, m, n, m + 1, dtype), "lda": m + 1}
    values |= {"x": vector(rng, m, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    case = Case(f"{letter}ger_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
@pytest.mark.parametrize(("incx", "incy"), STRIDES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("uplo", "UL")
def test_symv(letter, uplo, n, incx, incy, alpha, beta, rng) -> None:
    dtype = LETTERS[letter]
    values = {"uplo": uplo, "n": n, "alpha": scalar(alpha, dtype), "beta": scalar(beta, dtype)}
    values |= {"a": matrix(rng, n, n, n + 2, dtype, uplo), "lda": n + 2}
    values |= {"x": vector(rng, n, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    case = Case(f"{letter}symv_", values)
    check(case, rng)
    check_subsets(case, rng)


def triangular(rng, n, ld, dtype, uplo, diag):
    """A triangle that can be inverted without loss."""
    a = matrix(rng, n, n, ld, dtype, uplo.lower() if diag == "U" else uplo)
    if diag == "N":
        a.values[np.arange(n) * (ld + 1)] += 3 * np.sign(a.values[np.arange(n) * (ld + 1)].real)
    return a


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("incx", [1, 2, -3])
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(("uplo", "trans", "diag"), list(itertools.product("UL", "NTC", "UN")))
@pytest.mark.parametrize("name", ["trmv", "trsv"])
def test_triangle_and_vector(letter, name, uplo, trans, diag, n, incx, rng) -> None:
    dtype = LETTERS[letter]
    values = {"uplo": uplo, "trans": trans, "diag": diag, "n": n, "lda": n + 2, "incx": incx}
    values |= {"a": triangular(rng, n, n + 2, dtype, uplo, diag), "x": vector(rng, n, incx, dtype)}
    case = Case(f"{letter}{name}_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
@pytest.mark.parametrize(("m", "n", "k"), [(3, 4, 5), (4, 2, 1), (3, 2, 0), (0, 2, 3)])
@pytest.mark.parametrize(("transa", "transb"), list(itertools.product("NTC", repeat=2)))
def test_gemm(letter, transa, transb, m, n, k, alpha, beta, rng) -> None:
    dtype = LETTERS[letter]
    a, b = (m, k) if transa == "N" else (k, m), (k, n) if transb == "N" else (n, k)
    values = {"transa": transa, "transb": transb, "m": m, "n": n, "k": k}
    values |= {"alpha": scalar(alpha, dtype), "beta": scalar(beta, dtype)}
    values |= {"a": matrix(rng, *a, a[0] + 2, dtype), "lda": a[0] + 2}
    values |= {"b": matrix(rng, *b, b[0] + 1, dtype), "ldb": b[0] + 1}
    values |= {"c": matrix(rng, m, n, m + 3, dtype), "ldc": m + 3}
    case = Case(f"{letter}gemm_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
@pytest.mark.parametrize(("m", "n"), [(3, 4), (4, 2), (0, 2)])
@pytest.mark.parametrize(("side", "uplo"), list(itertools.product("LR", "UL")))
def test_symm(letter, side, uplo, m, n, alpha, beta, rng) -> None:
    dtype = LETTERS[letter]
    order = m if side == "L" else n
    values = {"side": side, "uplo": uplo, "m": m, "n": n, "alpha": scalar(alpha, dtype), "beta": scalar(beta, dtype)}
    values |= {"a": matrix(rng, order, order, order + 2, dtype, uplo), "lda": order + 2}
    values |= {"b": matrix(rng, m, n, m + 1, dtype), "ldb": m + 1}
    values |= {"c": matrix(rng, m, n, m + 3, dtype), "ldc": m + 3}
    case = Case(f"{letter}symm_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
@pytest.mark.parametrize(("n", "k"), [(3, 4), (4, 1), (3, 0), (0, 2)])
@pytest.mark.parametrize(("uplo", "trans"), list(itertools.product("UL", "NT")))
@pytest.mark.parametrize("name", ["syrk", "syr2k"])
def test_rank_k(letter, name, uplo, trans, n, k, alpha, beta, rng) -> None:
    dtype = LETTERS[letter]
    shape = (n, k) if trans == "N" else (k, n)
    values = {"uplo": uplo, "trans": trans, "n": n, "k": k, "alpha": scalar(alpha, dtype), "beta": scalar(beta, dtype)}
    values |= {"a": matrix(rng, *shape, shape[0] + 2, dtype), "lda": shape[0] + 2}
    values |= {"b": matrix(rng, *shape, shape[0] + 1, dtype), "ldb": shape[0] + 1}
    values |= {"c": matrix(rng, n, n, n + 3, dtype, uplo), "ldc": n + 3}
    case = Case(f"{letter}{name}_", values)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("alpha", [1.0, -0.6, 0.0])
@pytest.mark.parametrize(("m", "n"), [(3, 4), (4, 2), (0, 2)])
@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), list(itertools.product("LR", "UL", "NTC", "UN")))
@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_triangle_and_matrix(letter, name, side, uplo, trans, diag, m, n, alpha, rng) -> None:
    dtype = LETTERS[letter]
    order = m if side == "L" else n
    values = {"side": side, "uplo": uplo, "trans": trans, "diag": diag, "m": m, "n": n, "alpha": scalar(alpha, dtype)}
    values |= {"a": triangular(rng, order, order + 2, dtype, uplo, diag), "lda": order + 2}
    values |= {"b": matrix(rng, m, n, m + 1, dtype), "ldb": m + 1}
    case = Case(f"{letter}{name}_", values)
    check(case, rng)
    check_subsets(case, rng)
