"""Forward mode, reverse mode and finite differences agree on programs that Hypothesis writes.

A short fixed sequence in every run; `make fuzz` draws many more. A failure prints the smallest program that shows it:
it belongs into the corpus, as a kernel and a row.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.kernels.case import Case
from tests.support import three_way, through_jax
from tests.support.examples import few
from tests.support.programs import SIGNATURE, Program, programs

pytestmark = pytest.mark.slow


def _case(folder: Path, program: Program, seed: int) -> Case:
    path = folder / "program.c"
    path.write_text(program.source)
    r = np.random.default_rng(seed)
    arguments = {
        "a": float(r.uniform(0.2, 1)),
        "x": r.normal(size=program.n),
        "place": r.integers(0, program.n, program.m, dtype=np.int32),
        "y": r.normal(size=program.n),
        "z": r.normal(size=program.m),
    }
    return Case("program", SIGNATURE, lambda _: arguments, file=str(path), step=2e-3)


@few(8)
@given(programs(), st.integers(0, 2**16))
def test_programs(program: Program, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case = _case(Path(folder), program, seed)
        subject = through_jax.subject(case)
        three_way.check_primal(subject, case)
        try:
            known = three_way.truth(case)
        except three_way.RoughError:
            # A branch turns next to these inputs, or the program is chaotic: only the modes can be compared.
            event("without finite differences")
            three_way.check_modes(subject, case)
            return
        event("with finite differences")
        three_way.check_reverse(subject, known, three_way.check_forward(subject, known))
