"""Compares forward mode, reverse mode and finite differences of a kernel: one number per way, so that any two can be
told apart.

All derivatives are taken along one random direction v of the floating-point arguments, of the sum of all floating-point
results weighted by one random w:

    order 1    <w, J v>                 from jvp, from vjp, and from differences of <w, f>
    order n    d/dv of the order before that, again by each way, and by differences of what the order before gave
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from jax_enzyme.errors import DifferentiationError
from jax_enzyme.primitives.arguments import checked_args

_STEPS = {"double": 1e-3, "single": 3e-2}
_TOLERANCES = {"double": 1e-6, "single": 3e-2}


@dataclass(frozen=True)
class Comparison:
    """One derivative: `ways` from the innermost to the outermost, its value, that of finite differences, and how far
    apart they are relative to the larger of both and of the function itself."""

    ways: tuple[str, ...]
    value: float
    difference: float
    error: float


@dataclass(frozen=True)
class GradientReport:
    """What `check_grads` found. Prints as a table."""

    kernel: str
    comparisons: tuple[Comparison, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        return all(c.error <= self.tolerance for c in self.comparisons)

    def __str__(self) -> str:
        lines = [f"derivatives of {self.kernel}, relative tolerance {self.tolerance:g}"]
        for c in self.comparisons:
            verdict = "" if c.error <= self.tolerance else "  <- differs"
            way = " of ".join(reversed(c.ways))
            lines.append(f"  {way:<24} {c.value:< 24.15g} differences {c.difference:< 24.15g} {c.error:.1e}{verdict}")
        return "\n".join(lines)


def check_grads(
    kernel: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    tolerance: float | None = None,
    seed: int = 0,
) -> GradientReport:
    """Compares derivatives up to `order` in all combinations of `modes` with finite differences.

        >>> square = je.kernel("float square(float x) { return x * x; }", "square", "x: f32 -> f32", lang="c")
        >>> print(je.check_grads(square, (3.0,)))
        derivatives of square, relative tolerance 0.03
          fwd ...
          rev ...

    Returns a report if they agree; raises a DifferentiationError that shows it if they do not. `tolerance` is relative.
    Where the kernel compares with exact values (`x == 0`), arguments that have them show a derivative that is missed
    there: `kernel.inspect(...).comparisons` says which may be, and `docs/shortcuts.md` what to do.
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown or order < 1:
        raise ValueError(f"modes are 'fwd' and 'rev', order is at least 1: got {tuple(modes)}, {order}")
    leaves, structure = jax.tree.flatten(checked_args(args))

    def flat(*leaves: Any) -> Any:
        return kernel(*jax.tree.unflatten(structure, leaves))

    arrays = [a if type(a) is int else jnp.asarray(a) for a in leaves]
    moving = [i for i, a in enumerate(arrays) if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jnp.inexact)]
    if not moving:
        raise ValueError("no argument is floating-point: there is nothing to differentiate")
    noise = np.random.default_rng(seed)
    at: list[Any] = [arrays[i] for i in moving]
    along = [random_like(x, noise) for x in at]
    weighted = _weighted(flat, arrays, moving, noise)
    precision = "double" if all(x.dtype in (jnp.float64, jnp.complex128) for x in at) else "single"
    comparisons: list[Comparison] = []
    for depth in range(1, order + 1):
        for ways in product(modes, repeat=depth):
            inner = weighted
            for way in ways[:-1]:
                inner = inner.derivative(way, along)
            value = inner.derivative(ways[-1], along)(at)
            comparisons.append(_compared(ways, value, inner, at, along, _STEPS[precision]))
    name = getattr(kernel, "__name__", repr(kernel))
    report = GradientReport(name, tuple(comparisons), tolerance or _TOLERANCES[precision])
    if not report.ok:
        raise DifferentiationError(
            f"derivatives disagree\n{report}",
            remedy="if the function is smooth at these arguments, and there was no ShortcutWarning (a comparison with "
            "an exact value, see kernel.inspect), this is a defect of jax_enzyme: please report it",
        )
    return report


def random_like(like: Any, noise: np.random.Generator) -> jax.Array:
    """Normally distributed numbers of the shape and the floating-point dtype of an array."""
    value = noise.normal(size=like.shape)
    if jnp.issubdtype(like.dtype, jnp.complexfloating):
        value = value + 1j * noise.normal(size=like.shape)
    return jnp.asarray(value.astype(like.dtype))


@dataclass(frozen=True)
class _Weighted:
    """<w, f> as a function of the arguments that move, where `function` is f. Its derivatives are of the same form, so
    that only numbers that are known are ever weighted: each operation of JAX beside the kernel would be compiled."""

    function: Callable[[list[Any]], list[Any]]
    weights: list[Any]

    def __call__(self, at: list[Any]) -> float:
        results = zip(self.weights, self.function(at), strict=True)
        # The pairing under which JAX's vjp is the transpose of its jvp.
        return sum(float(np.sum(np.real(_exact(w) * _exact(y)))) for w, y in results)

    def derivative(self, way: str, direction: list[Any]) -> _Weighted:
        """The derivative along a direction."""
        if way == "fwd":
            return _Weighted(lambda at: jax.jvp(self.function, (at,), (direction,))[1], self.weights)
        return _Weighted(lambda at: jax.vjp(self.function, at)[1](self.weights)[0], direction)


def _weighted(
    kernel: Callable[..., Any], args: Sequence[Any], moving: Sequence[int], noise: np.random.Generator
) -> _Weighted:
    """All floating-point results, with random weights."""

    def function(values: list[Any]) -> list[Any]:
        full = list(args)
        for i, value in zip(moving, values, strict=True):
            full[i] = value
        return [y for y in jax.tree.leaves(kernel(*full)) if jnp.issubdtype(y.dtype, jnp.inexact)]

    weights = [random_like(y, noise) for y in function([args[i] for i in moving])]
    if not weights:
        raise ValueError("no result is floating-point: there is nothing to differentiate")
    return _Weighted(function, weights)


def _exact(array: Any) -> np.ndarray:
    """Its numbers, in double precision."""
    found = np.asarray(array)
    return found.astype(np.result_type(found.dtype, np.float64))


def _moved(x: jax.Array, by: np.ndarray) -> Any:
    """An array beside x, where x is."""
    there = (_exact(x) + by).astype(x.dtype)
    return jax.device_put(there, x.sharding) if x.committed else there


def _compared(
    ways: tuple[str, ...], value: float, inner: _Weighted, at: list[Any], along: list[Any], step: float
) -> Comparison:
    def central(h: float) -> float:
        up, down = ([_moved(x, sign * h * _exact(d)) for x, d in zip(at, along, strict=True)] for sign in (1, -1))
        return (inner(up) - inner(down)) / (2 * h)

    # Two steps of Richardson's extrapolation: what is left is of sixth order in the step.
    once = [central(step / 2**n) for n in range(3)]
    twice = [(4 * b - a) / 3 for a, b in pairwise(once)]
    difference = (16 * twice[1] - twice[0]) / 15
    scale = max(abs(value), abs(difference), abs(inner(at)), 1e-30)
    return Comparison(ways, value, difference, abs(value - difference) / scale)
