"""Adjoints of neighbours are added behind their loop: the gradient is the same, and the loop can be vectorised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "late_sums.c")
GRIDS = str(Path(__file__).parents[2] / "benchmarks/kernels/heat2d.c")
SWAPPED = "n: i32, steps: i32, r: f64, scratch v: f64[n,n], inout u: f64[n,n]"

LATE = {
    "backwards": Case("backwards", "n: i32, x: f64[n], inout y: f64[n]", lambda r: _two(r, 40), file=OWN),
    "shared": Case("shared", "n: i32, x: f64[n], inout y: f64[n]", lambda r: _two(r, 40), file=OWN),
    "heat2d": Case("heat2d", SWAPPED, lambda r: _grid(r, 11), file=GRIDS),
    "heat2d_copied": Case("heat2d_copied", SWAPPED, lambda r: _grid(r, 11), file=GRIDS),
    "jacobi_swap": replace(case("jacobi_swap"), inputs=lambda r: {"sweeps": 3} | _two(r, 20, "f", "u")),
    "weighted": Case(
        "weighted",
        "n: i32, m: i32, w: f64[9], x: f64[n,m], inout y: f64[n,m]",
        lambda r: {"w": r.normal(size=9)} | {k: r.normal(size=(13, 12)) for k in "xy"},
        file=OWN,
    ),
    "planes": Case(
        "planes",
        "n: i32, x: f64[n,n,n], inout y: f64[n,n,n]",
        lambda r: {k: r.normal(size=(10, 10, 10)) for k in "xy"},
        file=OWN,
    ),
    "records": Case("records", "n: i32, u: f64[3*n], inout y: f64[3*n]", lambda r: _two(r, 60, "u", "y"), file=OWN),
    "complexes": Case(
        "complexes",
        "n: i32, m: i32, z: f64[n,m,2], inout y: f64[n,m,2]",
        lambda r: {k: r.normal(size=(12, 13, 2)) for k in "zy"},
        file=OWN,
    ),
    "beside": Case("beside", "n: i32, inout u: f64[3*n]", lambda r: _two(r, 60, "u"), file=OWN),
    "red_black": Case(
        "red_black",
        "n: i32, m: i32, w: f64, inout u: f64[n,m]",
        lambda r: {"w": 0.3, "u": r.normal(size=(9, 22))},
        file=OWN,
    ),
    "rows": Case("rows", "n: i32, x: f64[n,12] -> f64", lambda r: {"x": r.uniform(1, 2, (8, 12))}, file=OWN),
    "levels": Case(
        "levels",
        "n: i32, m: i32, steps: i32, inout x: f64[3,n,m], inout y: f64[2,n,m]",
        lambda r: {"steps": 8, "x": r.normal(size=(3, 10, 12)), "y": r.normal(size=(2, 10, 12))},
        file=OWN,
    ),
    "lines": Case("lines", "n: i32, steps: i32, inout x: f64[3,n]", lambda r: _lines(r, (3, 20)), file=OWN),
    "recursive": Case(
        "recursive", "n: i32, depth: i32, x: f64[n] -> f64", lambda r: {"depth": 2} | _two(r, 20, "x"), file=OWN
    ),
    "same_array": Case("same_array", "n: i32, inout x: f64[2*n+2]", lambda r: _two(r, 82, "x"), file=OWN),
    "pyramid": Case("pyramid", "n: i32, inout x: f64[n]", lambda r: {"x": r.uniform(0.5, 1, 30)}, file=OWN),
    "slopes": Case("slopes", "n: i32, x: f64[n], inout y: f64[n]", lambda r: _two(r, 40), file=OWN),
    "growing": Case("growing", "n: i32, inout x: f64[n]", lambda r: {"x": r.uniform(0.5, 1, 30)}, file=OWN),
}
AT_ONCE = {
    "same_places": Case("same_places", "n: i32, inout x: f64[2*n+2]", lambda r: _two(r, 82, "x"), file=OWN),
    "in_place": Case("in_place", "n: i32, inout x: f64[n]", lambda r: _two(r, 40, "x"), file=OWN),
    "levels_overlap": Case(
        "levels_overlap",
        "n: i32, m: i32, steps: i32, inout x: f64[2*n-2,m]",
        lambda r: {"steps": 3, "x": r.normal(size=(18, 12))},
        file=OWN,
    ),
    "lines_overlap": Case(
        "lines_overlap", "n: i32, steps: i32, inout x: f64[3*n-6]", lambda r: _lines(r, 54), file=OWN
    ),
    "pyramid_down": Case("pyramid_down", "n: i32, inout x: f64[n]", lambda r: {"x": r.uniform(0.5, 1, 30)}, file=OWN),
    "calls": Case(
        "calls", "n: i32, depth: i32, inout x: f64[n] -> f64", lambda r: {"depth": 2} | _two(r, 20, "x"), file=OWN
    ),
    "gauss_seidel": replace(
        case("gauss_seidel"), inputs=lambda r: {"sweeps": 2, "f": r.normal(size=(12, 12)), "u": r.normal(size=(12, 12))}
    ),
}


def _two(r: np.random.Generator, n: int, *names: str) -> dict[str, np.ndarray]:
    return {name: r.normal(size=n) for name in names or ("x", "y")}


def _lines(r: np.random.Generator, shape: int | tuple[int, ...]) -> dict[str, object]:
    return {"steps": 12, "x": r.uniform(0.1, 0.5, shape)}


def _grid(r: np.random.Generator, n: int) -> dict[str, object]:
    return {"steps": 3, "r": 0.2, "u": r.normal(size=(n, n))}


def _gradient(row: Case, options: Options | None = None) -> Module:
    kernel = Specialised.of(row, options)
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,), options)
    return entry_module(function)


def _late(module: Module) -> int:
    """The loops that add what has been kept."""
    return sum(block.name.endswith(".sum") for f in module.functions.values() for block in f.blocks)


@pytest.mark.parametrize("name", LATE)
def test_late(name: str) -> None:
    row = LATE[name]
    three_way.check(through_engine.subject(row, split=True), row)
    assert _late(_gradient(row)) > 0


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_the_loop_writes_is_added_at_once(name: str) -> None:
    three_way.check(through_engine.subject(AT_ONCE[name]), AT_ONCE[name])
    assert _late(_gradient(AT_ONCE[name])) == 0


@pytest.mark.parametrize("row", (LATE["lines"], AT_ONCE["lines_overlap"]), ids=str)
def test_levels_that_take_turns_are_loaded_again(row: Case) -> None:
    """What the compiler carries from one iteration to the next, where the level that is written is another one."""
    kernel = Specialised.of(row)
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, kernel.options)
    instructions = function.module.functions[function.symbol].instructions()
    carried = any(isinstance(i, I.Phi) and T.is_float(i.type) for i in instructions)
    assert carried is (row.entry == "lines_overlap")


def test_calls_of_a_function_that_calls_itself_share_one_stack() -> None:
    deep = replace(LATE["recursive"], inputs=lambda r: {"depth": 500} | _two(r, 1200, "x"))
    three_way.check(through_engine.subject(deep), deep)


def test_adjoints_that_are_alike_but_for_sign_and_factor_are_kept_once() -> None:
    instructions = (i for f in _gradient(LATE["slopes"]).functions.values() for i in f.instructions())
    kinds = (i.allocated_type for i in instructions if isinstance(i, I.Alloca))
    assert sum(isinstance(kind, T.ArrayType) and kind.element == T.DOUBLE for kind in kinds) == 1


def test_the_reverse_loop_is_vectorised() -> None:
    """What is kept of an iteration is computed several iterations at a time."""
    module = parse(optimised_text(_gradient(LATE["backwards"])))
    products = (i for f in module.functions.values() for i in f.instructions() if i.opcode == "fmul")
    assert any(isinstance(i, I.BinaryOp) and isinstance(i.type, T.VectorType) for i in products)


def test_the_reverse_loop_of_a_segment_is_vectorised() -> None:
    """What lies on a tape that is found through a pointer is apart from what adjoints are written to."""
    row = replace(LATE["heat2d"], inputs=lambda r: _grid(r, 40) | {"steps": 30})
    text = optimised_text(_gradient(row, Options(checkpoint=8)))
    assert "@llvm.vector.reduce.fadd" in text


def test_adjoints_that_are_alike_but_for_weights_are_kept_once() -> None:
    instructions = (i for f in _gradient(LATE["weighted"]).functions.values() for i in f.instructions())
    kinds = (i.allocated_type for i in instructions if isinstance(i, I.Alloca))
    assert sum(isinstance(kind, T.ArrayType) and kind.element == T.DOUBLE for kind in kinds) == 1


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
def test_a_weight_that_is_infinite_scales_what_it_reads_alone(weight: float) -> None:
    """Around what is kept lie zeros, which are no terms of the sum."""
    row = LATE["weighted"]
    arguments = row.arguments | {"w": np.where(np.arange(9) == 2, weight, row.arguments["w"])}
    ways = (through_engine.subject(row, options=o) for o in (None, Options(without=("late_sums",))))
    late, at_once = (way.vjp(arguments, {"y": np.ones((13, 12))})["x"] for way in ways)
    assert np.isfinite(late).sum() == 13 * 12 - 9 * 8
    np.testing.assert_allclose(late, at_once, rtol=1e-12)
