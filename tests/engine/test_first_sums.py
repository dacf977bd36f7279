"""Cotangents that one read alone makes are set, and start from nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Pullback
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.second import Second
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "first_sums.c")
# Whether the cotangent of x is cleared.
CLEARED = {
    "once": False,
    "scaled": False,
    "columns": False,
    "both_ends": True,
    "shared": True,
    "broadcast": True,
    "some": True,
    "chosen": True,
    "behind": True,
    "early": True,
    "local": True,
}


@pytest.mark.parametrize("name", CLEARED)
def test_what_is_set_needs_no_zeros(name: str) -> None:
    row = _row(name)
    three_way.check(through_engine.subject(row), row)
    three_way.check(through_engine.subject(row, split=True), row)
    kernel = Specialised.of(row)
    built = kernel.build(Pullback(kernel.vjp.wanted, kernel.vjp.seeded))
    assert [b.zero for b in built.buffers if b.name == "x_bar"] == [CLEARED[name]]


@pytest.mark.parametrize("name", ("scaled", "columns"))
def test_second_derivatives(name: str) -> None:
    row = _row(name)
    second = Second(Specialised.of(row), row)
    products = [second.product(order) for order in ("fwd-over-rev", "rev-over-fwd")]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-9)


def _row(name: str) -> Case:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {"x": r.uniform(0.3, 0.9, 24), "y": np.zeros(24)}

    return Case(name, "n: i32, x: f64[n], inout y: f64[n]", values, file=OWN)
