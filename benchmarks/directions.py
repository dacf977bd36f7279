"""Eight tangents, and eight cotangents, of one point in one call, over eight calls of one: what Jacobians are made of.

python -m benchmarks.directions [name]

Through JAX, under `jax.jit`; processor time, medians, in turns. Lanes are compared with single calls first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jax_enzyme as je
from benchmarks.gradients import Problem
from benchmarks.problems import table
from benchmarks.through_jax import processor_seconds

COUNT = 8


def main(only: str) -> None:
    """Prints the table for the problems whose names contain `only`."""
    jax.config.update("jax_enable_x64", True)
    shown = Table(title=f"{COUNT} directions in one call over {COUNT} calls")
    for head in ("function", "size", "tangents", "cotangents"):
        shown.add_column(head, justify="left" if head in ("function", "size") else "right")
    for problem in table():
        if only in problem.name:
            print(problem.name, flush=True)
            shown.add_row(problem.name, problem.size, *map("{:.2f}".format, ratios(problem)))
    Console().print(shown)


def ratios(problem: Problem) -> tuple[float, float]:
    """For tangents, and for cotangents."""
    kernel = je.kernel(problem.path, problem.symbol, problem.signature)
    point = {name: jax.numpy.asarray(problem.arguments[name]) for name in problem.wanted}
    rest = {name: value for name, value in problem.arguments.items() if name not in point}

    def function(point: Mapping[str, Any]) -> Any:
        results = jax.tree.leaves(kernel(**point, **rest))
        return [r for r in results if jax.numpy.issubdtype(r.dtype, np.floating)]

    def forward(point: Mapping[str, Any], tangent: Mapping[str, Any]) -> Any:
        return jax.jvp(function, (point,), (tangent,))[1]

    def reverse(point: Mapping[str, Any], cotangent: Any) -> Any:
        return jax.vjp(function, point)[1](cotangent)[0]

    results = jax.eval_shape(function, point)
    return _ratio(forward, point, _random(point)), _ratio(reverse, point, _random(results))


def _random(like: Any) -> Any:
    noise = np.random.default_rng(0)
    return jax.tree.map(lambda v: jax.numpy.asarray(noise.normal(size=(COUNT, *v.shape)), v.dtype), like)


def _ratio(function: Callable[[Any, Any], Any], point: Any, directions: Any) -> float:
    one = jax.jit(function)
    every = jax.jit(jax.vmap(function, (None, 0)))
    singles = [jax.tree.map(lambda v, i=i: v[i], directions) for i in range(COUNT)]
    together = every(point, directions)
    for i, single in enumerate(singles):
        for ours, theirs in zip(*map(jax.tree.leaves, (together, one(point, single))), strict=True):
            np.testing.assert_allclose(ours[i], theirs, rtol=1e-4, atol=1e-7 * float(abs(theirs).max()))
    times: dict[bool, list[float]] = {True: [], False: []}
    began = time.perf_counter()
    while len(times[True]) < 5 or time.perf_counter() - began < 1.0:
        times[True].append(processor_seconds(lambda: every(point, directions)))
        times[False].append(processor_seconds(lambda: [one(point, single) for single in singles]))
    return statistics.median(times[True]) / statistics.median(times[False])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
