"""What takes long in a loop comes first, in strips or once for all: the same numbers in the same order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.long_loops import root_of
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.codegen.strips import compute_early, reads_where_data_say
from jax_enzyme.codegen.vector_math import vector_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.native import call
from tests.support.through_engine import Specialised
from tests.support.verified import verify

OWN = str(Path(__file__).parent / "strips.c")


def _case(name: str, signature: str, **shapes: int | tuple[()]) -> Case:
    return Case(name, signature, lambda r: {k: r.uniform(0.5, 2, s) for k, s in shapes.items()}, file=OWN)


def _ordered(n: int) -> Case:
    return _case("ordered", "n: i32, w: f64[n], x: f64[n] -> f64", w=n, x=n)


def _tabled(name: str, c: float) -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        return {"c": c, "x": r.normal(size=70), "t": r.normal(size=20), "y": r.normal(size=50)}

    return Case(name, "n: i32, m: i32, c: f64, x: f64[n + m], inout t: f64[m], inout y: f64[n]", arguments, file=OWN)


SPRINGS = "n: i32, m: i32, ends: i32[m, 2], x: f64[n], inout f: f64[n] -> f64"


def _springs(r: np.random.Generator) -> dict[str, object]:
    ends = r.integers(0, 30, (200, 2)).astype(np.int32)
    return {"ends": ends, "x": r.normal(size=30), "f": r.normal(size=30)}


CASES = {
    "springs": Case(
        "springs", "n: i32, m: i32, ends: i32[m, 2], x: f64[n], inout f: f64[n] -> f64", _springs, file=OWN
    ),
    "ordered": _ordered(300),
    "forces": _case("forces", "n: i32, q: f64[2 * n], inout f: f64[2 * n]", q=60, f=60),
    "newton": _case("newton", "n: i32, a: f64, inout x: f64[n]", x=40, a=()),
    "waves": _case("waves", "n: i32, m: i32, c: f64, x: f64[n + m], inout y: f64[n]", x=50, y=20, c=()),
    "tabled": _tabled("tabled", 1.3),
    "tabled, not reached": _tabled("tabled", -1.3),
    "tabled anew": _tabled("tabled_anew", 1.3),
    "arms": _tabled("arms", -1.3),
    "recorded": _case("recorded", "n: i32, x: f64[n], out r: f64[n], inout z: f64[n] -> f64", x=40, z=40),
    "units": Case(
        "units",
        "n: i32, m: i32, a: f64[m], w: f64[m] -> f64",
        lambda r: {"n": 4, "a": r.normal(size=16), "w": r.normal(size=16)},
        file=OWN,
    ),
    "stages": _case("stages", "n: i32, c: f64, inout y: f64[n * 64]", y=192, c=()),
}


def _loops(row: Case) -> Loops:
    """The loops that the kernel has, as LLVM's optimisation begins."""
    kernel = Specialised.of(row)
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, None)
    module = clone(function.module)
    compute_early(module)
    verify(module)
    return Loops.of(module.functions[function.symbol])


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    row = CASES[name]
    three_way.check(through_engine.subject(row, split=True), row)


@pytest.mark.parametrize("n", [15, 16, 128, 255, 257, 600])
def test_sums_keep_their_order(n: int) -> None:
    row = _ordered(n)
    w, x = (row.arguments[k] for k in "wx")
    total = 0.0
    for i in range(n):
        total = total if i % 7 == 3 else (total + w[i] / x[i]) - np.sqrt(x[i])
    assert call(Specialised.of(row).build(), [w, x])[0] == total


@pytest.mark.parametrize(
    ("row", "loops"),
    [
        (_ordered(15), 1),
        (_ordered(256), 2),
        (_ordered(257), 3),
        (CASES["forces"], 4),
        (CASES["newton"], 1),
        (CASES["waves"], 4),
        (CASES["springs"], 3),
    ],
    ids=str,
)
def test_loops(row: Case, loops: int) -> None:
    assert len(_loops(row).all) == loops


@pytest.mark.skipif("tanh" not in vector_functions(), reason="no vector math")
def test_short_ones_are_vectors() -> None:
    """LLVM would unroll what comes first in a loop of 16 iterations, and call `tanh` for one number after the other."""
    kernel = Specialised.of(CASES["units"])
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, None)
    assert "v_tanh(" in optimised_text(entry_module(function))


@pytest.mark.parametrize(("name", "adds"), [("springs", True), ("newton", False), ("forces", False)])
def test_derivatives_that_add_where_data_say(name: str, adds: bool) -> None:
    """Reverse has strips as well, of regular loops."""
    kernel = Specialised.of(CASES[name])
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, None)
    assert reads_where_data_say(function.module.functions[function.symbol]) == adds


def test_stores_to_memory_of_their_own_come_first() -> None:
    """`r` is stored with the roots, and beside it what `z` needs of them in local memory."""
    early, late = ([i for b in loop.blocks for i in b.instructions] for loop in _loops(CASES["recorded"]).all)
    if any(isinstance(i, I.Store) and root_of(i.operands[1]).name.endswith("z") for i in early):
        early, late = late, early
    named = [[root_of(i.operands[1]).name for i in part if isinstance(i, I.Store)] for part in (early, late)]
    assert sum(name.endswith("r") for name in named[0]) == 1
    assert [name[-1:] for name in named[1]] == ["z"]


@pytest.mark.parametrize(("name", "stored"), [("tabled", 0), ("tabled, not reached", 0), ("tabled anew", 1)])
def test_what_is_stored_alike_is_stored_once(name: str, stored: int) -> None:
    row = CASES[name]
    c, x, t, y = (row.arguments[k] for k in "cxty")
    n, m = len(y), len(t)
    for i in range(n):
        if c > 0:
            t = np.sin(c * np.arange(m))
        y = np.where(np.arange(n) == i, t @ x[i : i + m] if c > 0 else 0.0, y)
        if name == "tabled anew":
            t = t + np.where(np.arange(m) == i % m, x[i], 0.0)
    found = call(Specialised.of(row).build(), [row.arguments[k] for k in "cxty"])
    np.testing.assert_allclose(found[0], t, rtol=1e-12)
    np.testing.assert_allclose(found[1], y, rtol=1e-12)
    loops = _loops(row)
    inner = [i for loop in loops if loop.parent is not None for b in loop.blocks for i in b.instructions]
    assert sum(isinstance(i, I.Store) for i in inner) == stored
