"""Clears and copies of large memory, which several threads do together where they share the loops."""

from __future__ import annotations

import numpy as np

from jax_enzyme.codegen import derived
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Step, Vjp
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse
from jax_enzyme.transform.parallel_loops import share_marked_loops
from tests.support.native import call
from tests.support.team import Team

_SOURCE = """#include <stdlib.h>
#include <string.h>
void k(int n, const double *x, double *y) {
  double *u = calloc(n, 8);
  memcpy(y, x, 8 * (size_t)n);
#pragma omp parallel for
  for (int i = 2; i < n; i += 2) u[i] = x[i] * x[i - 1] + x[i - 2];
#pragma omp parallel for
  for (int i = 0; i < n; i += 3) y[i] += u[i] * u[i];
  free(u);
}"""
_SIZE = 40_001
"""Of as many numbers, no whole number of parts is made."""


def test_large_memory_is_cleared_and_copied_by_several_threads() -> None:
    program, signature = load(_SOURCE, "k", "c", ("-fopenmp",)), parse("n: i32, x: f64[n], out y: f64[n]")
    binding = Binding.of({"n": _SIZE}, {})
    x = np.random.default_rng(4).uniform(0.2, 1.4, _SIZE)
    function = derived.regular(program, signature, binding, Options())
    text = to_text(entry_module(share_marked_loops(function)[0]))
    assert [text.count(f"@{name}(") for name in ("je.copy", "je.cleared")] == [2, 2], "each is defined, and called once"
    u = np.zeros(_SIZE)
    u[2::2] = (x[1:] * x[:-1])[1::2] + x[:-2:2]
    expected = x.copy()
    expected[::3] += u[::3] ** 2
    steps: tuple[Step, ...]
    for steps in ((), (Vjp((True, False), (False, True)),)):
        built = derived.build(program, signature, binding, steps, Options())
        given = [x if b.name == "x" else np.cos(x) for b in built.buffers if b.is_input]
        alone = call(built, given)
        for team in (Team(2), Team(3)):
            assert [a.tobytes() for a in call(built, given, team=team.address)] == [a.tobytes() for a in alone]
            assert (4, 5) in [part for parts in team.ran.values() for part in parts], "320008 bytes in 5 parts"
        if not steps:
            np.testing.assert_allclose(alone[0], expected, rtol=1e-15)
