"""Inner loops that differ in length share a slot without gaps, and gradients stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "packing.c")

ROWS = [
    ("repeated", {"steps": 3, "n": 16}, 3 * 16 * 17 // 2),
    ("corner", {"n": 8}, 8 * 9 * 17 // 6),  # sums of squares: one table, each entry a square
    ("doubled", {"n": 32}, 5 * 16),
    ("halved", {"levels": 5, "n": 2100}, 2100 + 1050 + 525 + 262 + 131),
    ("once", {"steps": 3, "n": 22}, 2 * 3 * 22),
    ("each", {"steps": 3, "n": 22}, 3 * 22 * 22 + 3 * 22),
    ("left_early", {"n": 20}, 20 * 21),  # two numbers in each iteration
    ("empty_first", {"n": 24}, 144),
    ("never", {"n": 12}, 0),
]


@pytest.mark.parametrize(("name", "sizes", "items"), ROWS, ids=[name for name, _, _ in ROWS])
def test_ragged_nests_have_no_gaps(name: str, sizes: dict[str, int], items: int) -> None:
    signature = "".join(f"{size}: i32, " for size in sizes) + "x: f64[n] -> f64"

    def values(r: np.random.Generator) -> dict[str, object]:
        return {"x": r.uniform(0.3, 0.9, sizes["n"]), **{k: v for k, v in sizes.items() if k != "n"}}

    row = Case(name, signature, values, file=OWN)
    three_way.check(through_engine.subject(row, split=True), row)
    kernel = Specialised.of(row)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    (tape,) = [b.nbytes for b in built.buffers if b.role == "tape"]
    assert items * 8 <= tape <= items * 10 + 20 * max(sizes.values())


READ = [
    ("read", "counts: i64[3], x: f64[3] -> f64", {"counts": np.array([4, 5, 6])}),
    ("scaled", "unit: i32[1], x: f64[40] -> f64", {"unit": np.array([2], np.int32)}),
]


@pytest.mark.parametrize(("name", "signature", "given"), READ, ids=[name for name, _, _ in READ])
def test_lengths_that_only_the_run_knows_take_no_room_for_the_most(
    name: str, signature: str, given: dict[str, object]
) -> None:
    row = Case(name, signature, lambda r: {**given, "x": r.uniform(0.3, 0.9, 40 if name == "scaled" else 3)}, file=OWN)
    whole = Options(checkpoint=False)
    kernel = Specialised.of(row, whole)
    assert kernel.splits(kernel.vjp)  # a tape of terabytes is none
    three_way.check(through_engine.subject(row, split=True, options=whole), row)
