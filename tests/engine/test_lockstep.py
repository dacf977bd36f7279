"""Eight iterations of a loop at a time: the same numbers, and the same gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import with_regular_loops
from jax_enzyme.ir.arrays import Augmented, Pullback
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.transform.lockstep import has_lockstep, in_lockstep
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.native import call
from tests.support.through_engine import Specialised
from tests.support.verified import verify

D = 20
"""More than are unrolled."""
OWN = str(Path(__file__).parent / "lockstep.c")


def _case(name: str, signature: str, **shapes: int | tuple[int, ...]) -> Case:
    return Case(name, signature, lambda r: {k: r.uniform(-1, 1, s) for k, s in shapes.items()}, file=OWN)


def _distances(n: int) -> Case:
    return _case(
        "distances",
        "n: i32, d: i32, l: f64[d,d], mean: f64[d], x: f64[n,d], inout u: f64[d], inout terms: f64[d],"
        " inout far: f64[n] -> f64",
        l=(D, D), mean=D, x=(n, D), u=D, terms=D, far=n,
    )  # fmt: skip


def _looked_up() -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        which = r.integers(0, 4, (37, D)).astype(np.int32)
        return {"which": which, "table": r.uniform(-0.3, 0.3, (4, D)), "c": r.uniform(-0.3, 0.3, D), "u": np.zeros(D)}

    signature = "n: i32, d: i32, m: i32, which: i32[n,d], table: f64[4,m], c: f64[d], inout u: f64[d] -> f64"
    return Case("looked_up", signature, arguments, file=OWN)


def _histogram() -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        where = r.integers(0, 3, 40).astype(np.int32)
        return {"where": where, "a": r.normal(size=D), "x": r.normal(size=40), "y": r.normal(size=3)}

    signature = "n: i32, d: i32, where: i32[n], a: f64[d], x: f64[n], inout y: f64[3]"
    return Case("histogram", signature, arguments, file=OWN)


def _layers() -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        shapes = {"w": (D, D), "x": (D, 67), "h": D, "y": 67}
        return {k: r.uniform(-1, 1, s).astype(np.float32) for k, s in shapes.items()}

    signature = "n: i32, d: i32, w: f32[d,d], x: f32[d,n], inout h: f32[d], inout y: f32[n]"
    return Case("layers", signature, arguments, file=OWN, flags=("-DREAL=float",))


def _rays() -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        cell = r.integers(0, 4, (37, D)).astype(np.int32)
        return {"cell": cell, "f": r.uniform(0, 1, (37, D)), "density": r.uniform(0.1, 0.9, 5)}

    signature = "n: i32, d: i32, m: i32, cell: i32[n,d], f: f64[n,d], density: f64[m] -> f64"
    return Case("rays", signature, arguments, file=OWN)


def _factor(n: int) -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        return {"a": np.eye(n) * n + r.uniform(-1, 1, (n, n))}

    return Case("factor", "n: i32, inout a: f64[n,n] -> f64", arguments, file=OWN)


def _above(first: int) -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        return {"first": first, "w": r.uniform(-1, 1, D), "a": r.uniform(-1, 1, (40, D))}

    return Case("above", "n: i32, d: i32, first: i32, w: f64[d], inout a: f64[n,d]", arguments, file=OWN)


def _windows(both: int) -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        return {"both": both, "a": r.uniform(-1, 1, D), "x": r.normal(size=40), "y": r.normal(size=41)}

    return Case("windows", "n: i32, d: i32, both: i32, a: f64[d], x: f64[n], inout y: f64[n + 1]", arguments, file=OWN)


TOGETHER = {
    "factor": _factor(67),
    "above": _above(1),
    "distances": _distances(40),
    "columns": _case(
        "columns",
        "n: i32, d: i32, l: f64[d,d], x: f64[n,d], inout u: f64[d], inout q: f64[d] -> f64",
        l=(D, D),
        x=(40, D),
        u=D,
        q=D,
    ),
    "films": _case(
        "films", "n: i32, d: i32, wave: f64[n], depth: f64[d], loss: f64[d] -> f64", wave=35, depth=D, loss=D
    ),
    "layers": _layers(),
    "looked up": _looked_up(),
    "left": _case("left", "n: i32, d: i32, a: f64[d], inout u: f64[d], inout y: f64[n]", a=D, u=D, y=33),
    "matrices": _case("matrices", "n: i32, d: i32, x: f64[n,d], inout u: f64[d,d] -> f64", x=(40, D), u=(D, D)),
    "nearest": _case("nearest", "n: i32, d: i32, w: f64[d], x: f64[n], y: f64[d] -> f64", w=D, x=40, y=D),
    "windows": _windows(0),
    "rays": _rays(),
    "rates": _case(
        "rates",
        "n: i32, d: i32, start: f64[d], s: f64[d], z: f64[n,d], scratch l: f64[d] -> f64",
        start=30,
        s=30,
        z=(40, 30),
    ),
    "shorter": _case("shorter", "n: i32, d: i32, w: f64[d], x: f64[n,d], inout y: f64[n]", w=D, x=(70, D), y=70),
}
APART = {
    "few": _distances(31),
    "kept": _case("kept", "n: i32, d: i32, a: f64[d], x: f64[n], inout u: f64[d] -> f64", a=D, x=40, u=D),
    "passed on": _case("passed_on", "n: i32, d: i32, a: f64[d], inout y: f64[n + 1]", a=D, y=41),
    "branches": _case("branches", "n: i32, d: i32, a: f64[d], x: f64[n] -> f64", a=D, x=40),
    "decaying": _case("decaying", "n: i32, d: i32, a: f64[d], x: f64[n] -> f64", a=D, x=40),
    "histogram": _histogram(),
    "above, with what was written": _above(0),
    "windows, both at once": _windows(1),
    "ragged": _case("ragged", "n: i32, a: f64[n], x: f64[n] -> f64", a=40, x=40),
}


SYSTEMS = _case(
    "systems",
    "n: i32, d: i32, r: f64, u: f64[n + 2,d], inout c: f64[d], inout e: f64[d], out v: f64[n,d]",
    r=(),
    u=(35, D),
    c=D,
    e=D,
)


def _changes(row: Case, sweep: type[Augmented | Pullback] | None = None) -> bool:
    """Whether anything runs in lockstep in a kernel, or in one of its sweeps alone."""
    kernel = Specialised.of(row)
    steps = () if sweep is None else (sweep(kernel.vjp.wanted, kernel.vjp.seeded),)
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, steps, None)
    regular = function if sweep is None else with_regular_loops(function)
    changed = in_lockstep(regular)
    verify(changed.module)
    return changed is not regular


@pytest.mark.parametrize("name", TOGETHER)
def test_together(name: str) -> None:
    row = TOGETHER[name]
    three_way.check(through_engine.subject(row, split=True), row)
    three_way.check(through_engine.subject(row), row)
    assert _changes(row)


@pytest.mark.parametrize("name", APART)
def test_apart(name: str) -> None:
    row = APART[name]
    three_way.check(through_engine.subject(row, split=True), row)
    assert not _changes(row)


@pytest.mark.parametrize("n", [32, 33, 40, 41, 47])
def test_values_are_the_same_to_the_last_bit(n: int) -> None:
    row = _distances(n)
    _check_values(row, *(row.arguments[k] for k in ("l", "mean", "x", "u", "terms", "far")))


def test_values_of_factors_are_the_same_to_the_last_bit() -> None:
    row = TOGETHER["factor"]
    _check_values(row, row.arguments["a"])


def test_what_is_left_of_ragged_loops_is_halved() -> None:
    """Of the rows below a pivot up to eight are left; from five on, four of them run in lockstep too."""
    kernel = Specialised.of(TOGETHER["factor"])
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, (), None)
    text = to_text(in_lockstep(function).module)
    assert "fdiv <8 x double>" in text
    assert "fdiv <4 x double>" in text


def _check_values(row: Case, *given: Any) -> None:
    together = call(Specialised.of(row, Options(vector_math=False)).build(), given)
    apart = call(Specialised.of(row, Options(vector_math=False, without=("lockstep",))).build(), given)
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["columns", "distances", "films", "rates", "rays"])
def test_both_sweeps(name: str) -> None:
    """That of `rates` has a triangle on the tape, of which numbers of iterations in lockstep lie side by side; `films`
    calls a quotient's helpers, whose attributes are in a group, and scales cotangents by the 0 of `I`; that of `rays`
    adds where data say, several rays to one place."""
    assert _changes(TOGETHER[name], Augmented)
    assert _changes(TOGETHER[name], Pullback)


def test_sums_of_inner_loops_wait_for_derivatives() -> None:
    """The value adds up in the order of the source; the reverse has no sum, and is looked at for that."""
    row = _case("fits", "n: i32, d: i32, a: f64[d], x: f64[n], y: f64[d] -> f64", a=D, x=35, y=D)
    kernel = Specialised.of(row)
    assert has_lockstep(derived.derived(kernel.program, kernel.signature, kernel.binding, (), None))
    assert not _changes(row)
    assert _changes(row, Pullback)
    three_way.check(through_engine.subject(row, split=True), row)


def test_parts_of_memory_and_sums_in_each_others_places() -> None:
    """In one function, the forward sweep stores what all iterations share to one place of the tape."""
    assert _changes(SYSTEMS)
    assert _changes(SYSTEMS, Pullback)
    three_way.check(through_engine.subject(SYSTEMS), SYSTEMS)


def test_threads_share_blocks_of_iterations() -> None:
    """The same for any number of threads, and as if nothing ran in lockstep."""
    r = np.random.default_rng(0)
    given = 0.5, np.eye(D) + 0.1 * r.normal(size=(D, D)), r.normal(size=(500, D))
    signature = "n: i32, d: i32, c: f64, l: f64[d,d], inout b: f64[n,d]"
    found = dict[bytes, list[np.ndarray]]()
    for options in (je.Options(threads=1), je.Options(threads=2), je.Options(threads=2, without=("lockstep",))):
        kernel = je.kernel(OWN, "solves", signature, options=options)
        assert all(text.endswith("on several threads") for _, text in kernel.inspect(*given).loops)
        value, pullback = jax.vjp(kernel, *given)
        results = [np.asarray(a) for a in (value, *pullback(value))]
        found[b"".join(a.tobytes() for a in results)] = results
    together, apart = found.values()
    np.testing.assert_array_equal(together[0], apart[0])
    for a, b in zip(together[1:], apart[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
