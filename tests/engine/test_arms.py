"""What the arms of a branch keep takes turns at one place of the tape, and gradients stay right."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jax_enzyme.ad.plan.choices import Choices
from jax_enzyme.ad.reversal import plan_reversal
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.derived import derived
from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.options import Options
from jax_enzyme.rules.table import standard
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.arm_programs import SIGNATURE, inputs, program
from tests.support.examples import few
from tests.support.second import Second
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "arms.c")
LENGTH = 23
# Numbers of eight bytes that an iteration keeps, where each has a place of its own, and where they take turns.
ROWS = {"two": (4, 3), "many": (4, 3), "twice": (4, 3), "ways": (6, 5), "open_ended": (0, 0), "behind": (4, 3)}


@pytest.mark.parametrize("name", ROWS)
def test_arms_keep_at_one_place(name: str) -> None:
    more = ", out y: f64[n]" if name == "behind" else ""

    def values(r: np.random.Generator) -> dict[str, object]:
        return {"way": r.integers(0, 6, LENGTH).astype(np.int32), "x": r.uniform(0.3, 1.4, LENGTH)}

    row = Case(name, f"n: i32, way: i32[n], x: f64[n]{more} -> f64", values, file=OWN)
    three_way.check(through_engine.subject(row, split=True), row)
    three_way.check(through_engine.subject(row), row)
    kept = tuple(_tape(row, options) // 8 // LENGTH for options in (Options(without=("arms",)), Options()))
    assert kept == ROWS[name]


@few(6)
@given(st.integers(0, 2**16))
def test_generated(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        row = _generated(Path(folder), seed)
        three_way.check(through_engine.subject(row), row)


@pytest.mark.parametrize("seed", (1, 17, 119))
def test_tapes_of_generated_programs_shrink(seed: int, tmp_path: Path) -> None:
    row = _generated(tmp_path, seed)
    three_way.check(through_engine.subject(row, split=True), row)
    second = Second(Specialised.of(row), row)
    products = [second.product(order) for order in ("fwd-over-rev", "rev-over-fwd")]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-9)
    shared, apart = (_planned(row, options) for options in (Options(), Options(without=("arms",))))
    assert shared < 0.9 * apart


def _generated(folder: Path, seed: int) -> Case:
    path = folder / "program.c"
    path.write_text(program(seed))
    return Case("program", SIGNATURE, lambda r: inputs(r, 17), file=str(path), step=4e-3)


def _planned(row: Case, options: Options) -> int:
    """The bytes of one frame of each kind."""
    kernel = Specialised.of(row, options)
    base = canonical(derived(kernel.program, kernel.signature, kernel.binding))
    tape = plan_reversal(base, kernel.vjp, standard(), choices=Choices.of(options)).root.plan.tape
    return sum(frame.size for frame in (tape.root, *tape.frames.values()))


def _tape(row: Case, options: Options) -> int:
    kernel = Specialised.of(row, options)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    return sum(b.nbytes for b in built.buffers if b.role == "tape")
