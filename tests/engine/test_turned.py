"""Loops are reversed from their first iteration on where that does not matter, and gradients stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ad.reversal import plan_reversal
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.derived import derived
from jax_enzyme.rules.table import standard
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "turned.c")
# Of each function: how many loops are turned, and how many have a reverse.
ROWS = {
    "maps": (1, 1),
    "stencil": (4, 5),
    "last_one": (0, 1),
    "but_one": (0, 1),
    "prefix": (0, 1),
    "one_place": (0, 1),
    "neighbour": (0, 1),
    "doubled": (0, 1),
    "ring": (1, 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_order_of_iterations(name: str) -> None:
    def values(r: np.random.Generator) -> dict[str, object]:
        return {"x": r.uniform(0.3, 0.9, 300), "y": r.uniform(0.3, 0.9, 300)}

    row = Case(name, "n: i32, x: f64[n], inout y: f64[n] -> f64", values, file=OWN)
    three_way.check(through_engine.subject(row), row)
    kernel = Specialised.of(row)
    base = canonical(derived(kernel.program, kernel.signature, kernel.binding))
    work = plan_reversal(base, kernel.vjp, standard()).root.work
    assert (len(work.turned), len([loop for loop in work.code.loops if loop not in work.inert])) == ROWS[name]
