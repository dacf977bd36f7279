"""Memory that a loop reads, and that is overwritten later, is kept once, and gradients stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.native import call
from tests.support.second import Second
from tests.support.team import Team
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
    "shared": (196, 110),
    "shared_around": (201, 201),
}


@pytest.mark.parametrize("name", ROWS)
def test_memory_is_kept_once(name: str) -> None:
    row = _row(name)
    three_way.check(through_engine.subject(row, split=ROWS[name] is not None), row)
    three_way.check(through_engine.subject(row), row)
    if ROWS[name] is not None:
        kept = tuple(_tape(row, options) for options in (Options(without=("snapshots",)), Options()))
        assert kept == ROWS[name]


def test_threads_that_share_a_loop_read_the_copy_in_front_of_it() -> None:
    kernel = Specialised.of(_row("shared", 8000))
    built = kernel.build(kernel.vjp)
    given = [np.random.default_rng(2).uniform(0.3, 0.9, b.shape) for b in built.buffers if b.is_input]
    alone, team = call(built, given), Team(2)
    assert [a.tobytes() for a in call(built, given, team=team.address)] == [a.tobytes() for a in alone]
    assert team.ran


@pytest.mark.parametrize("name", ("take_turns", "two_ways"))
def test_second_derivatives(name: str) -> None:
    row = _row(name)
    second = Second(Specialised.of(row), row)
    products = [second.product(order) for order in ("fwd-over-rev", "rev-over-fwd")]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-9)


def _row(name: str, length: int = LENGTH) -> Case:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {"steps": STEPS, "x": r.uniform(0.3, 0.9, length)}

    more = ", out y: f64[n]" if name == "take_turns" else ""
    flags = ("-fopenmp",) if name.startswith("shared") else ()
    return Case(name, f"steps: i32, n: i32, inout x: f64[n]{more} -> f64", values, file=OWN, flags=flags)


def _tape(row: Case, options: Options) -> int:
    kernel = Specialised.of(row, options)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    return 100 * sum(b.nbytes for b in built.buffers if b.role == "tape") // (8 * STEPS * LENGTH)
