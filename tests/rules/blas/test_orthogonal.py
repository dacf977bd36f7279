"""Q R: its reflections, one by one, and what is in terms of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rules.blas import cases
from tests.rules.blas.checks import check, check_subsets, cotangents, tangents
from tests.rules.blas.test_levels import Rng


@pytest.mark.parametrize(("letter", "name"), [*((x, "geqrf") for x in "sdcz"), *((x, "geqp3") for x in "sdz")])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 3), (3, 5), (1, 2), (0, 2), (2, 0)])
def test_columns(letter: str, name: str, m: int, n: int, rng: Rng) -> None:
    check(cases.geqrf(rng, letter, m, n, name), rng)


@pytest.mark.parametrize(("letter", "trans"), [("d", "N"), ("d", "t"), ("z", "N"), ("z", "c")])
@pytest.mark.parametrize(("side", "m", "n"), [("L", 5, 2), ("R", 2, 4), ("L", 3, 3)])
def test_products(letter: str, side: str, trans: str, m: int, n: int, rng: Rng) -> None:
    case = cases.multiplied(rng, letter, side, trans, m, n, 3)
    check(case, rng)
    check_subsets(case, rng)


def test_a_column_that_is_not_reflected_has_no_derivative(rng: Rng) -> None:
    """It is where the sign of a row of R jumps."""
    case = cases.geqrf(rng, "d", 3, 2)
    a = case.numbers("a")
    a.values[1:3] = 0
    ones = {name: case.numbers(name).like(1.0) for name in case.floats}
    assert np.isnan(tangents(case, ones)["a"]).any()
    assert np.isnan(cotangents(case, {"a": a.like(1.0)}, 0.0, 0)["a"]).any()
