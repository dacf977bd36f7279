"""The gradient does not depend on what must not matter: the compiler's level, `restrict`, sweeps apart or together,
sizes known or not, and where objects of the engine lie in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ad import derive
from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Vjp
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import through_engine
from tests.support.engine import native
from tests.support.levels import LEVELS, at_level
from tests.support.three_way import Arrays, Subject, directions, reference

NAMES = (
    "fft", "gauss_seidel", "heat", "jacobi_swap", "kalman", "lu_pivot", "malloc_scratch",
    "memory_moves", "nested_exits", "newton", "quicksort", "struct_stack", "switch_ops",
)  # fmt: skip

STENCIL = """
#include <stdlib.h>
#include <string.h>
double stencil(int n, int steps, const double *RESTRICT u, double *RESTRICT v) {
    double *w = malloc(n * sizeof *w), energy = 0;
    for (int t = 0; t < steps; t++) {
        memcpy(w, v, n * sizeof *w);
        for (int i = 1; i < n - 1; i++) {
            v[i] = w[i] + 0.1 * (w[i - 1] - 2 * w[i] + w[i + 1]) * u[i];
            if (v[i] > 0.5) v[i] *= 0.9;
            energy += v[i] * v[i - 1] * u[i + 1];
        }
    }
    free(w);
    return energy;
}
"""
SIGNATURE = "n: i32, steps: i32, u: f64[n], inout v: f64[n] -> f64"


@pytest.fixture
def stencil(tmp_path: Path) -> Case:
    path = tmp_path / "stencil.c"
    path.write_text(STENCIL)
    r = np.random.default_rng(0)
    arguments = {"steps": 4, "u": r.uniform(0.5, 1, 9), "v": r.normal(size=9)}
    return Case("stencil", SIGNATURE, lambda _: arguments, file=str(path), flags=("-DRESTRICT=restrict",))


def gradient(row: Case, subject: Subject | None = None) -> Arrays:
    model = reference(row.path, row.entry, row.signature, row.flags)
    _, cotangents = directions(row, model, model(row.arguments), salt=7)
    pulled = (subject or through_engine.subject(row)).vjp(row.arguments, cotangents)
    return {name: np.asarray(value) for name, value in pulled.items()}


def same(one: Arrays, other: Arrays) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        size = float(np.max(np.abs(value), initial=0))
        np.testing.assert_allclose(other[name], value, rtol=1e-9, atol=1e-11 * size, err_msg=name)


_ENDS = (("-O0",), ("-O3",))
_AT_LEVELS = [(n, level) for k, n in enumerate(NAMES) for level in (LEVELS if k % 4 == 0 else _ENDS[k % 2])]


@pytest.mark.parametrize(("name", "level"), _AT_LEVELS)
def test_level(name: str, level: str, tmp_path: Path) -> None:
    """What a compiler's optimiser has been over already: plain at -O0, vectors at -O3."""
    row = case(name)
    same(gradient(row), gradient(at_level(row, level, tmp_path)))


@pytest.mark.parametrize("name", NAMES)
def test_split(name: str) -> None:
    row = case(name)
    same(gradient(row), gradient(row, through_engine.subject(row, split=True)))


def test_restrict(stencil: Case) -> None:
    same(gradient(stencil), gradient(replace(stencil, flags=("-DRESTRICT=",))))


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_known_at_run_time_alone(stencil: Case, steps: int) -> None:
    """The number of steps as a constant, and as a value."""
    known = {**stencil.arguments, "steps": steps}
    late = {**known, "steps": np.int32(steps)}
    same(
        gradient(replace(stencil, inputs=lambda _: known)),
        gradient(replace(stencil, inputs=lambda _: late)),
    )


def test_tapes_of_a_batch_are_aligned() -> None:
    """In a batch one tape follows the other: each is a whole number of units of alignment."""
    for name in NAMES:
        kernel = through_engine.Specialised.of(case(name))
        if kernel.splits(kernel.vjp):
            built = kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded))
            assert all(b.nbytes % 16 == 0 for b in built.buffers if b.role == "tape")


@pytest.mark.parametrize("name", ["constant_tables_of_pointers", "records_returned_by_recursive_functions"])
def test_plans_do_not_depend_on_addresses(name: str) -> None:
    """Sets of objects come in the order of their addresses: tables with shadows, and a value and its shadow that are
    both kept, once changed places from one derivation to the next."""
    source = Path(__file__).parent / "memory_shapes" / f"{name}.c"
    kernel = native(source.read_text(), "k", "n: i32, x: f64[n], out y: f64[n]", {"n": 6})
    base = derived.regular(kernel.program, kernel.signature, kernel.binding)
    text, step = to_text(base.module), Vjp((True, False), (False, True))
    copies = [ArrayFunction(parse(text), base.symbol, base.buffers) for _ in range(8)]
    assert len({to_text(derive(copy, (step,), Options()).module) for copy in copies}) == 1
