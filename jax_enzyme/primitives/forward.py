"""The rule for jvp: one fused call of the forward derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax import numpy as jnp

from jax_enzyme.ir.arrays import Augmented, Vjp
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.bound import Call, Operand, bind, forward_step, operands_of, residuals_of

Pair = tuple[list[Any], list[Any]]


def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> Pair:
    """Tangents that are symbolic zeros stay out of the derivative. Those of residuals do not count: whoever reads a
    residual has the inputs too, and its derivative is taken through them."""
    function = call.function
    given = zip(function.operands, tangents, strict=False)
    active = {i: t for i, t in given if not compat.is_zero(t) and function.buffers[i].is_floating}
    if not active:
        return _with_tangents(call, _again(call, primals), {})
    if isinstance(function.last, Augmented):
        return _of_augmented(call, primals, active)
    if active.keys() <= set(function.linear_operands):
        return _of_linear(call, primals, active)
    return _fused(call, primals, active)


def _again(call: Call, values: Sequence[Any], linear: bool = False) -> list[Any]:
    operands = [Operand(v, f) for v, f in zip(values, call.batch.flags, strict=True)]
    return bind(call.function, call.batch.sizes, operands, taped=call.taped, linear=linear or call.linear)


def _with_tangents(call: Call, out: list[Any], tangents: dict[int, Any]) -> Pair:
    found = [tangents.get(i) for i in call.results]
    return out, [compat.no_tangent(v) if t is None else t for v, t in zip(out, found, strict=True)]


def _of_augmented(call: Call, primals: Sequence[Any], active: dict[int, Any]) -> Pair:
    """Outputs have the tangents that the kernel's have; the tape has none."""
    derivative = forward_step(call.function.parent, frozenset(active))
    operands = operands_of(call, primals)
    dots = bind(
        derivative,
        call.batch.sizes,
        [*operands.values(), *(Operand(t, operands[i].flags) for i, t in active.items())],
        linear=True,
    )
    tangents = {derivative.buffers[i].of: t for i, t in zip(derivative.linear_results, dots, strict=True)}
    return _with_tangents(call, _again(call, primals), tangents)


def _of_linear(call: Call, primals: Sequence[Any], active: dict[int, Any]) -> Pair:
    """Only operands that the function is linear in move: the derivative is the function itself at their tangents."""
    function = call.function
    operands = operands_of(call, primals)
    moved = {i: active[i] if i in active else jnp.zeros_like(operands[i].value) for i in function.linear_operands}
    values = [moved.get(i, operand.value) for i, operand in operands.items()]
    dots = _again(call, [*values, *primals[len(values) :]], linear=True)
    return _with_tangents(call, _again(call, primals), dict(zip(function.linear_results, dots, strict=True)))


def _fused(call: Call, primals: Sequence[Any], active: dict[int, Any]) -> Pair:
    function = call.function
    derivative = forward_step(function, frozenset(active))
    taped = call.taped and isinstance(function.last, Vjp)
    operands = operands_of(call, primals)
    moving = [Operand(t, operands[i].flags) for i, t in active.items()]
    kept = residuals_of(call, primals) if taped else []
    results = bind(derivative, call.batch.sizes, [*operands.values(), *moving, *kept], taped=taped)
    values: dict[int, Any] = {}
    tangents: dict[int, Any] = {}
    for i, value in zip(derivative.results, results, strict=True):
        buffer = derivative.buffers[i]
        (tangents if buffer.role == "tangent" else values)[buffer.of] = value
    return _with_tangents(call, [values[i] for i in call.results], tangents)
