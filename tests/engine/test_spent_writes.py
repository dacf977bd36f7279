"""Stores after whose reverse nobody asks for the cotangent of their place: pullbacks leave it, and get no copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Pullback
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "spent_writes.c")
LINE = "n: i32, x: f64[n], out y: f64[n]"


def _case(name: str, signature: str = LINE, **inputs: int | tuple[int, ...] | np.ndarray) -> Case:
    """Numbers and arrays in the inputs are passed, shapes are filled."""

    def values(r: np.random.Generator) -> dict[str, object]:
        return {k: r.uniform(0.3, 0.9, v) if isinstance(v, tuple) else v for k, v in inputs.items()}

    return Case(name, signature, values, file=OWN)


AT = np.array([2, 5, 2, 0, 5, 1, 3], np.int32)
SPENT = [
    _case("once", x=(19,)),
    _case("either", x=(19,)),
    _case("product", "n: i32, a: f64[n,n], b: f64[n,n], out c: f64[n,n]", a=(20, 20), b=(20, 20)),
    _case("filled", x=(20,)),
]
ASKED_FOR = [
    _case("rows", "n: i32, x: f64[n], out y: f64[n,n]", x=(6,)),
    _case("rounds", "n: i32, count: i32, x: f64[n], out y: f64[n]", count=4, x=(9,)),
    _case("windows", x=(11,)),
    _case("in_place", x=(11,)),
    _case("scattered", "n: i32, x: f64[n], at: i32[n], out y: f64[n]", x=(7,), at=AT),
    _case("folded", x=(11,)),
    _case("worked", f"{LINE}, scratch t: f64[n]", x=(8,)),
    _case("emptied", x=(12,)),
    _case("recursive", x=(8,)),
]


def _read(row: Case) -> set[str]:
    """The cotangents of results that the pullback only reads."""
    kernel = Specialised.of(row)
    built = kernel.build(Pullback(kernel.vjp.wanted, kernel.vjp.seeded))
    return {built.buffers[i].name for i in built.read}


@pytest.mark.parametrize("row", SPENT, ids=str)
def test_a_cotangent_that_is_taken_once_is_only_read(row: Case) -> None:
    three_way.check(through_engine.subject(row, split=True), row)
    assert _read(row) == {"c_bar" if row.entry == "product" else "y_bar"}


@pytest.mark.parametrize("row", ASKED_FOR, ids=str)
def test_what_overwrites_a_number_that_was_there_tells_so(row: Case) -> None:
    three_way.check(through_engine.subject(row), row)
    three_way.check(through_engine.subject(row, split=True), row)
