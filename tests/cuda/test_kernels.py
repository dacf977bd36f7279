"""CUDA kernels on the CPU: the result is that of NumPy for every launch, and derivatives agree three ways and in the
second order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.signature import Binding, parse, parse_launch
from tests.cuda.cases import CASES, Case, Launch
from tests.support.engine import Native, agree, by_turns, three_way

EVERY_LAUNCH = [pytest.param(c, way, id=f"{c.name}-{n}") for c in CASES for n, way in enumerate(c.launches)]
FIRST_LAUNCH = [pytest.param(c, id=c.name) for c in CASES]


def subject(case: Case, way: Launch) -> Native:
    signature = parse(case.signature)
    program = load(case.path, case.name, None, way.flags)
    program = replace(program, launch=parse_launch(signature, way.grid, way.block, way.shared))
    return Native(program, signature, Binding.of(case.dims, {}))


def inputs(case: Case) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    arrays = case.inputs(np.random.default_rng(7))
    names = [p.name for p in parse(case.signature).caller_params]
    return arrays, [np.asarray(arrays[n]) for n in names]


@pytest.mark.parametrize(("case", "way"), EVERY_LAUNCH)
def test_result(case: Case, way: Launch) -> None:
    arrays, given = inputs(case)
    for got, expected in zip(subject(case, way).run((), given), case.reference(arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", FIRST_LAUNCH)
def test_three_ways(case: Case) -> None:
    """The last launches are in `test_device_derivatives`, where reverse mode goes the other way of the two."""
    other = by_turns(CASES.index(case) + 1)
    agree(three_way(subject(case, case.launches[0]), inputs(case)[1], step=case.step, sweeps=other))


@pytest.mark.parametrize("case", [p for p in FIRST_LAUNCH if p.id != "softmax"])  # the shuffles of `reduce`, thrice
def test_second_order(case: Case) -> None:
    """The tangent of the pullback is the difference of pullbacks."""
    kernel = subject(case, case.launches[0])
    given = inputs(case)[1]
    rng = np.random.default_rng(3)
    base = kernel.buffers
    wanted = tuple(b.is_input and b.is_floating for b in base)
    seeded = tuple(b.is_result and b.is_floating for b in base)
    pull = Vjp(wanted, seeded)
    seeds = [rng.normal(size=b.shape) for b in base if b.is_result and b.is_floating]
    floating = [b.is_floating for b in base if b.is_input]
    tangents = [rng.normal(size=np.shape(x)) for x, f in zip(given, floating, strict=True) if f]

    from jax_enzyme.codegen import derived

    layout = derived.layout(kernel.program, kernel.signature, kernel.binding, (pull,), kernel.options)
    mask = tuple(b.is_input and b.is_floating and b.role == "primal" for b in layout)

    def pulled(h: float) -> list[np.ndarray]:
        directions = iter(tangents)
        moved = [x + h * next(directions) if f else x for x, f in zip(given, floating, strict=True)]
        arrays = arranged(moved, seeds)
        return [r for r, b in zip(kernel.run((pull,), arrays), [b for b in layout if b.is_result], strict=True)]

    def arranged(values: list[np.ndarray], cotangents: list[np.ndarray]) -> list[np.ndarray]:
        own, bars = iter(values), iter(cotangents)
        return [next(own) if b.role == "primal" else next(bars) for b in layout if b.is_input]

    both = kernel.run((pull, Jvp(mask)), [*arranged(given, seeds), *tangents])
    second = derived.layout(kernel.program, kernel.signature, kernel.binding, (pull, Jvp(mask)), kernel.options)
    results = [b for b in second if b.is_result]
    got = [r for r, b in zip(both, results, strict=True) if b.role == "tangent"]
    h = 1e-6 if case.step > 1e-8 else 1e-8
    expected = [(a - b) / (2 * h) for a, b in zip(pulled(h), pulled(-h), strict=True)]
    size = max(float(np.max(np.abs(e), initial=0)) for e in expected)
    tolerance = 1e-5 if case.step > 1e-8 else 1e-4
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(size, 1.0))
