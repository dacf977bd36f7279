"""Memory that a loop reads, and that is overwritten later, is kept once, and gradients stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.second import Second
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "snapshots.c")
STEPS, LENGTH = 5, 33
# Numbers that are kept of each place and step, in so many hundredths: without copies, and with them.
ROWS = {
    "copied_back": (196, 110),
    "take_turns": (283, 103),
    "two_ways": (316, 134),  # what iterations at the ends read is kept by itself
    "open_ended": None,
    "in_place": (283, 191),  # what it has not written yet
    "never": (193, 103),
    "at_least": None,
    "allocated": (201, 103),
    "given_back": None,
    "ahead": (283, 103),
    "below": (500, 103),
    "behind": (283, 283),
    "written_before": (1600, 1600),
    "downwards": (283, 283),
}


@pytest.mark.parametrize("name", ROWS)
def test_memory_is_kept_once(name: str) -> None:
    row = _row(name)
    three_way.check(through_engine.subject(row, split=ROWS[name] is not None), row)
    three_way.check(through_engine.subject(row), row)
    if ROWS[name] is not None:
        kept = tuple(_tape(row, options) for options in (Options(without=("snapshots",)), Options()))
        assert kept == ROWS[name]


@pytest.mark.parametrize("name", ("take_turns", "two_ways"))
def test_second_derivatives(name: str) -> None:
    row = _row(name)
    second = Second(Specialised.of(row), row)
    products = [second.product(order) for order in ("fwd-over-rev", "rev-over-fwd")]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-9)


def _row(name: str) -> Case:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {"steps": STEPS, "x": r.uniform(0.3, 0.9, LENGTH)}

    more = ", out y: f64[n]" if name == "take_turns" else ""
    return Case(name, f"steps: i32, n: i32, inout x: f64[n]{more} -> f64", values, file=OWN)


def _tape(row: Case, options: Options) -> int:
    kernel = Specialised.of(row, options)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    return 100 * sum(b.nbytes for b in built.buffers if b.role == "tape") // (8 * STEPS * LENGTH)
