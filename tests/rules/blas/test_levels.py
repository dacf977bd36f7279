"""BLAS: every routine, with all flags, strides of both signs, gaps, and special scalars."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.rules.blas import cases
from tests.rules.blas.checks import check, check_subsets
from tests.support.pairwise import pairwise

LETTERS = "dz"
STRIDES = [(1, 1), (2, -3), (-1, 2), (-2, -1)]
SCALARS = [(1.3, 0.7), (0.0, 0.7), (1.3, 0.0), (1.0, 1.0)]
TRIANGLES = list(itertools.product("UL", "NTC", "UN"))
TWO = "ddot daxpy dcopy dswap drot zaxpy zcopy zswap zrot".split()
ONE = "dscal dnrm2 dasum zscal zrscal znrm2 zasum".split()
RANKS = "dsyrk dsyr2k zsyrk zsyr2k zherk zher2k".split()

# What chooses the formula (the routine, its numbers, its flags) meets in full, or in pairs where flags are handled one
# by one; strides, scalars and shapes, which it does not depend on, meet each other and all of that in pairs. Sizes at
# which little or nothing is left to compute are rows of their own beside them.

Rng = np.random.Generator

letters = pytest.mark.parametrize("letter", LETTERS)


@pytest.mark.parametrize(
    ("name", "incx", "incy", "n"), [*pairwise(TWO, STRIDES, [5]), *pairwise(TWO, STRIDES[1:2], [0, 1])]
)
def test_two_vectors(name: str, incx: int, incy: int, n: int, rng: Rng) -> None:
    case = cases.two_vectors(rng, name[0], name[1:], n, incx, incy)
    check(case, rng)
    check_subsets(case, rng)


@letters
@pytest.mark.parametrize(("name", "incx", "incy"), [("axpy", 0, 2), ("axpy", 1, 0), ("copy", 0, -1), ("copy", -2, 0)])
def test_stride_of_zero(letter: str, name: str, incx: int, incy: int, rng: Rng) -> None:
    check(cases.two_vectors(rng, letter, name, 4, incx, incy), rng)


@pytest.mark.parametrize(("name", "incx", "n"), [*pairwise(ONE, [1, 3, -2], [5]), *pairwise(ONE, [-2], [0, 1])])
def test_one_vector(name: str, incx: int, n: int, rng: Rng) -> None:
    case = cases.one_vector(rng, name[0], name[1:], n, incx)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("letter", "trans", "m", "n", "incx", "incy", "alpha", "beta"),
    [
        *pairwise(list(itertools.product(LETTERS, "NTc")), [(3, 5), (4, 2)], STRIDES, SCALARS),
        *pairwise(LETTERS, "NTc", [(0, 3), (3, 0)], STRIDES, SCALARS),
    ],
)
def test_gemv(
    letter: str, trans: str, m: int, n: int, incx: int, incy: int, alpha: float, beta: float, rng: Rng
) -> None:
    case = cases.gemv(rng, letter, trans, m, n, incx, incy, alpha, beta)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("name", "m", "n", "incx", "incy"), pairwise(["dger", "zgeru", "zgerc"], [(3, 5), (4, 2), (0, 3), (3, 0)], STRIDES)
)
def test_ger(name: str, m: int, n: int, incx: int, incy: int, rng: Rng) -> None:
    case = cases.ger(rng, name[0], name[1:], m, n, incx, incy)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("letter", "uplo", "n", "incx", "incy", "alpha", "beta"),
    [
        *pairwise(list(itertools.product(LETTERS, "UL")), [5], STRIDES, SCALARS),
        *pairwise(LETTERS, "UL", [0, 1], STRIDES[:2], SCALARS),
    ],
)
def test_symv(letter: str, uplo: str, n: int, incx: int, incy: int, alpha: float, beta: float, rng: Rng) -> None:
    case = cases.symv(rng, letter, uplo, n, incx, incy, alpha, beta)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("letter", "name", "uplo", "trans", "diag", "n", "incx"),
    [
        *pairwise(LETTERS, list(itertools.product(["trmv", "trsv"], TRIANGLES)), [5], [1, -3]),
        *pairwise(LETTERS, ["trmv", "trsv"], TRIANGLES, [0, 1], [1, -3]),
    ],
)
def test_triangle_and_vector(
    letter: str, name: str, uplo: str, trans: str, diag: str, n: int, incx: int, rng: Rng
) -> None:
    case = cases.triangle_and_vector(rng, letter, name, uplo, trans, diag, n, incx)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("letter", "transa", "transb", "m", "n", "k", "alpha", "beta"),
    [
        *pairwise(LETTERS, list(itertools.product("NTC", repeat=2)), [(3, 4, 5), (4, 2, 1)], SCALARS),
        *pairwise(LETTERS, "NTC", "NTC", [(3, 2, 0), (0, 2, 3)], SCALARS),
    ],
)
def test_gemm(
    letter: str, transa: str, transb: str, m: int, n: int, k: int, alpha: float, beta: float, rng: Rng
) -> None:
    case = cases.gemm(rng, letter, transa, transb, m, n, k, alpha, beta)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("name", "side", "uplo", "m", "n", "alpha", "beta"),
    pairwise(["dsymm", "zsymm", "zhemm"], list(itertools.product("LR", "UL")), [(3, 4), (4, 2)], SCALARS)
    + pairwise(["dsymm", "zsymm", "zhemm"], "LR", "UL", [(0, 2)], SCALARS),
)
def test_symm(name: str, side: str, uplo: str, m: int, n: int, alpha: float, beta: float, rng: Rng) -> None:
    case = cases.symm(rng, name[0], name[1:], side, uplo, m, n, alpha, beta)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("name", "uplo", "trans", "n", "k", "alpha", "beta"),
    [
        *pairwise(RANKS, list(itertools.product("UL", "NT")), [(3, 4), (4, 1)], SCALARS),
        *pairwise(RANKS, "UL", "NT", [(3, 0), (0, 2)], SCALARS),
    ],
)
def test_rank_k(name: str, uplo: str, trans: str, n: int, k: int, alpha: float, beta: float, rng: Rng) -> None:
    case = cases.rank_k(rng, name[0], name[1:], uplo, trans, n, k, alpha, beta)
    check(case, rng)
    check_subsets(case, rng)


@pytest.mark.parametrize(
    ("letter", "name", "side", "uplo", "trans", "diag", "m", "n", "alpha"),
    [
        *pairwise(LETTERS, list(itertools.product(["trmm", "trsm"], "LR", TRIANGLES)), [(3, 4, -0.6)]),
        *pairwise(LETTERS, ["trmm", "trsm"], "LR", TRIANGLES, [(0, 2, -0.6), (3, 4, 0.0)]),
    ],
)
def test_triangle_and_matrix(
    letter: str, name: str, side: str, uplo: str, trans: str, diag: str, m: int, n: int, alpha: float, rng: Rng
) -> None:
    case = cases.triangle_and_matrix(rng, letter, name, side, uplo, trans, diag, m, n, alpha)
    check(case, rng)
    check_subsets(case, rng)


def _single(letter: str) -> list[tuple[str, str]]:
    """Builders and names that exist for a letter."""
    vectors = "axpy copy swap rot".split() + ([] if letter == "c" else ["dot"])
    norms = "scal nrm2 asum".split() + (["rscal"] if letter == "c" else [])
    hermitian = ["hemm"] if letter == "c" else []
    ranks = "syrk syr2k".split() + (["herk", "her2k"] if letter == "c" else [])
    found = [("two_vectors", n) for n in vectors] + [("one_vector", n) for n in norms]
    found += [("triangle_and_vector", n) for n in ("trmv", "trsv")] + [("symm", n) for n in ("symm", *hermitian)]
    found += [("rank_k", n) for n in ranks] + [("triangle_and_matrix", n) for n in ("trmm", "trsm")]
    found += [("ger", n) for n in (("geru", "gerc") if letter == "c" else ("ger",))]
    return found + [(n, "") for n in "gemv symv gemm potrf potrs getrf getrs gesv trtrs laswp".split()]


@pytest.mark.parametrize(("letter", "builder", "name"), [(x, *found) for x in "sc" for found in _single(x)])
def test_single_precision(letter: str, builder: str, name: str, rng: Rng) -> None:
    make = getattr(cases, builder)
    check(make(rng, letter, name) if name else make(rng, letter), rng)
