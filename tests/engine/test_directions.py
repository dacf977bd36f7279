"""Derivatives for several directions at once: each lane is what a call for that direction alone gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented, Buffer, Pullback, Step
from jax_enzyme.transform.directions import NotLinear
from tests.kernels.case import Case
from tests.kernels.corpus import case as named
from tests.support.native import NUMPY, call
from tests.support.through_engine import Specialised, results

_LANES = 4
_NAMES = (
    "dot dot_f32 lu_pivot csr_matvec packed_quadratic matrix_exp malloc_scratch fft wave adaptive_ode struct_stack "
    "bisection complex_mandel bessel relu3 soft_dtw quicksort memory_moves templates conv2d sorted_list ir_vector"
).split()
"""One for each form of memory, control and guards in the corpus."""
_ONE_BY_ONE = {"sorted_list": "in memory of tangents", "ir_vector": "<4 x double>"}
"""What is called for one direction after the other, and why: pointers and numbers in one record, vectors."""


def _agrees(kernel: Specialised, step: Step, shared: Callable[[Buffer], Any]) -> None:
    """Compares the derivative for several directions with that for one; `shared` are the other inputs."""
    reason = _ONE_BY_ONE.get(kernel.program.symbol)
    if reason is not None:
        with pytest.raises(NotLinear, match=reason):
            kernel.build(replace(step, lanes=_LANES))
        return
    narrow, wide = kernel.build(step), kernel.build(replace(step, lanes=_LANES))
    random = np.random.default_rng(7)
    inputs = [b for b in wide.buffers if b.is_input]
    given = [random.normal(size=b.shape).astype(NUMPY[b.dtype]) if b.lanes else shared(b) for b in inputs]
    found = results(wide, given)
    for lane in range(_LANES):
        one = call(narrow, [v[..., lane] if b.lanes else v for b, v in zip(inputs, given, strict=True)])
        for (buffer, together), alone in zip(found, one, strict=True):
            precise = 1e-4 if buffer.dtype == "f32" else 1e-9
            own = together[..., lane] if buffer.lanes else together
            np.testing.assert_allclose(own, alone, rtol=precise, atol=precise, err_msg=buffer.name)


@pytest.fixture(params=_NAMES)
def case(request: pytest.FixtureRequest) -> Case:
    """A kernel of the corpus."""
    return named(request.param)


def test_tangents(case: Case) -> None:
    kernel = Specialised.of(case)
    _agrees(kernel, kernel.jvp, lambda b: case.arguments[b.name])


def test_cotangents(case: Case) -> None:
    kernel = Specialised.of(case)
    if not kernel.splits(kernel.vjp):
        _agrees(kernel, kernel.vjp, lambda b: case.arguments[b.name])
        return
    masks = kernel.vjp.wanted, kernel.vjp.seeded
    forward = kernel.build(Augmented(*masks))
    left = results(forward, [case.arguments[b.name] for b in forward.buffers if b.is_input])
    kept = {b.name: value for b, value in left} | case.arguments
    _agrees(kernel, Pullback(*masks), lambda b: kept[b.name])
