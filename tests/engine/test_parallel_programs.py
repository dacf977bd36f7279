"""Parallel loops that Hypothesis writes: the serial meaning in value and derivatives, the same bits on 1 to 4 threads.

A short fixed sequence in every run; `make fuzz` draws many more.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given

from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.support.engine import native
from tests.support.examples import few
from tests.support.native import call
from tests.support.parallel_programs import SIZE, programs
from tests.support.team import Team

pytestmark = pytest.mark.slow

_X = np.random.default_rng(4).uniform(0.2, 1.4, SIZE)
_SEEDS = np.random.default_rng(5).standard_normal((2, SIZE))
_STEPS = ((), (Jvp((True, False)),), (Vjp((True, False), (False, True)),))


@few(3, most=200)
@given(programs())
def test_parallel_loops_mean_what_serial_ones_mean(source: str) -> None:
    signature = "n: i32, x: f64[n], out y: f64[n]"
    parallel, serial = (native(source, "k", signature, {"n": SIZE}, flags=f) for f in (("-fopenmp",), ()))
    shared = False
    for steps, seed in zip(_STEPS, (None, *_SEEDS), strict=True):
        own, plain = (derived.build(k.program, k.signature, k.binding, steps, k.options) for k in (parallel, serial))
        given = [_X if b.name == "x" else seed for b in own.buffers if b.is_input]
        found, expected = call(own, given), call(plain, given)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9 * (1 + np.max(np.abs(theirs))))
        for threads in (2, 3, 4):
            team = Team(threads=threads)
            together = call(own, given, team=team.address)
            assert [a.tobytes() for a in found] == [b.tobytes() for b in together]
            shared |= bool(team.ran)
    event("on several threads" if shared else "on one thread")
