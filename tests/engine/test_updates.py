"""Numbers that are updated in place have cotangents that are updated in place, where nothing else may be in between."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.arrays import Pullback
from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "updates.c")
INDICES = {"first": np.array([1, 4, 2, 2, 0, 3], np.int32), "second": np.array([0, 4, 1, 2, 5, 4], np.int32)}


def _case(name: str, signature: str, **shapes: int | tuple[int, ...] | np.ndarray) -> Case:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {k: r.uniform(0.3, 0.9, v) if isinstance(v, tuple) else v for k, v in shapes.items()}

    return Case(name, signature, values, file=OWN)


UPDATED = [
    _case("walsh", "n: i32, inout x: f64[n]", x=(16,)),
    _case("rotated", "m: i32, n: i32, angle: f64[m], inout a: f64[m,n]", angle=(4,), a=(4, 7)),
    _case("chain", "n: i32, steps: i32, inout q: f64[n], inout v: f64[n]", steps=3, q=(9,), v=(9,)),
    case("fft"),
]
MIXED = [
    _case("pairs", "n: i32, first: i32[n], second: i32[n], inout x: f64[n]", **INDICES, x=(6,)),
    _case("crossed", "n: i32, inout x: f64[n]", x=(9,)),
    _case("again", "n: i32, inout x: f64[n]", x=(9,)),
    _case("taken", "n: i32, inout x: f64[n] -> f64", x=(10,)),
]


@pytest.mark.parametrize("row", UPDATED + MIXED, ids=str)
def test_gradients_are_right(row: Case) -> None:
    three_way.check(through_engine.subject(row), row)
    three_way.check(through_engine.subject(row, split=True), row)


def test_butterflies_leave_no_zeros_behind() -> None:
    """LLVM does not know that their two places are different ones."""
    row = UPDATED[0]
    kernel = Specialised.of(row)
    steps = (Pullback(kernel.vjp.wanted, kernel.vjp.seeded),)
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
    text = optimised_text(entry_module(function))
    assert not re.findall(r"store (?:double 0\.0|<. x double> zeroinitializer)", text)
