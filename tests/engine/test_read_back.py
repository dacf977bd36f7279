"""Numbers that an output holds when the kernel is done are not kept on the tape as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "read_back.c")
ROWS, LENGTH = 5, 8
# Numbers on the tape, in hundredths of those of the output.
KEPT = {"shares": 0, "states": 0, "some": 115, "squared": 200, "last": 105, "sorted": 150}


@pytest.mark.parametrize("name", KEPT)
def test_outputs_are_read_again(name: str) -> None:
    row = _row(name)
    three_way.check(through_engine.subject(row, split=True), row)
    three_way.check(through_engine.subject(row), row)
    kernel = Specialised.of(row)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    assert sum(b.nbytes for b in built.buffers if b.role == "tape") * 100 // (8 * ROWS * LENGTH) == KEPT[name]


def _row(name: str) -> Case:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {"x": r.uniform(0.3, 0.9, (ROWS, LENGTH)), "y": np.zeros((ROWS, LENGTH))}

    return Case(name, "m: i32, n: i32, x: f64[m,n], inout y: f64[m,n]", values, file=OWN)
