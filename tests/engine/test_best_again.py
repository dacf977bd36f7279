"""The best of all that a loop looks at is computed again: the same gradients, and nothing of the loop on the tape."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import Augmented
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised
from tests.support.verified import verify

OWN = str(Path(__file__).parent / "best_again.c")
N, M = 30, 20


def _rays(real: str) -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        to, far = np.linspace(-1, 1, M // 2), r.permutation(np.repeat([5.0, 8.0], M // 2))
        around = np.tile(to, 2)  # one sphere behind the other; every third ray goes between two
        spheres = np.stack([far * np.cos(around), far * np.sin(around), r.uniform(0.2, 0.3, M)], 1)
        angle = np.resize(to, N) + np.where(np.arange(N) % 3, 0.01, 0.11)
        kind = {"double": np.float64, "float": np.float32}[real]
        return {"way": np.stack([np.cos(angle), np.sin(angle)], 1).astype(kind), "spheres": spheres.astype(kind)}

    type_ = {"double": "f64", "float": "f32"}[real]
    signature = f"n: i32, m: i32, way: {type_}[n,2], spheres: {type_}[m,3] -> {type_}"
    return Case("rays", signature, arguments, file=OWN, flags=(f"-DREAL={real}",), step=1e-4)


def _ends() -> Case:
    def arguments(r: np.random.Generator) -> dict[str, object]:
        x, y = r.normal(size=N), r.normal(size=M)
        return {"x": x, "y": y, "low": r.uniform(0, 2, N), "high": r.uniform(4, 5, N)}

    return Case(
        "ends", "n: i32, m: i32, x: f64[n], y: f64[m], inout low: f64[n], inout high: f64[n]", arguments, file=OWN
    )


def _row(name: str) -> Case:
    io = "inout " if name == "written" else ""
    return Case(name, f"m: i32, {io}y: f64[m] -> f64", lambda r: {"y": r.uniform(0.2, 1, M)}, file=OWN)


AGAIN = {"rays": _rays("double"), "rays, single precision": _rays("float"), "ends": _ends()}
AS_IT_IS = {name: _row(name) for name in ("written", "growing", "gaps")}


def _tape(row: Case) -> int:
    kernel = Specialised.of(row)
    built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
    return sum(b.nbytes for b in built.buffers if b.role == "tape")


def _is_changed(row: Case) -> bool:
    kernel = Specialised.of(row)
    given = kernel.program, kernel.signature, kernel.binding
    function = derived.differentiated(*given, kernel.vjp, None).function
    verify(function.module)
    return function.module is not derived.regular(*given, None).module


@pytest.mark.parametrize("name", AGAIN)
def test_gradients(name: str) -> None:
    row = AGAIN[name]
    three_way.check(through_engine.subject(row, split=True), row)
    three_way.check(through_engine.subject(row), row)
    assert _is_changed(row)
    assert _tape(row) < 3 * N * M


@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_cannot_be_computed_again_stays(name: str) -> None:
    row = AS_IT_IS[name]
    three_way.check(through_engine.subject(row, split=True), row)
    assert not _is_changed(row)


def test_second_order() -> None:
    row = AGAIN["rays"]
    kernel = je.kernel(OWN, "rays", row.signature)
    way, spheres = row.arguments["way"], row.arguments["spheres"]
    over = jax.jacfwd(jax.grad(kernel, 1), 1)(way, spheres)
    forward = jax.jacfwd(jax.jacfwd(kernel, 1), 1)(way, spheres)
    np.testing.assert_allclose(over, forward, rtol=1e-9, atol=1e-9)
    assert np.any(forward)
