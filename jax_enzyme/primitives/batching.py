"""The rule for vmap: one more batch dimension, in front, on the operands that have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax import lax
from jax import numpy as jnp

from jax_enzyme.errors import ArgumentError
from jax_enzyme.primitives.bound import Call, Operand, bind


def batch(values: Sequence[Any], dims: Sequence[int | None], *, call: Call) -> tuple[list[Any], list[int | None]]:
    """Operands without the new dimension are shared, not copied. A result that depends on shared operands only (the
    value beside a batch of tangents, as in jacfwd) comes out without it."""
    mapped = [(v, d) for v, d in zip(values, dims, strict=True) if d is not None]
    if not mapped:
        return _bind(call, values, call.batch.sizes, call.batch.flags), [None] * len(call.results)
    size = mapped[0][0].shape[mapped[0][1]]
    if not isinstance(size, int):
        raise ArgumentError(
            f"`{call.function.base.name}` is mapped over {size} elements, a number that is not known",
            remedy="a kernel is compiled for sizes that are numbers: export one program for each",
        )
    if size == 0:
        return _nothing(call, values, dims)
    moved = [v if d is None else jnp.moveaxis(v, d, 0) for v, d in zip(values, dims, strict=True)]
    flags = [(d is not None, *own) for d, own in zip(dims, call.batch.flags, strict=True)]
    results = _bind(call, moved, (size, *call.batch.sizes), flags)
    varies = _varying(call, dims)
    out = [r if v else lax.index_in_dim(r, 0, 0, keepdims=False) for r, v in zip(results, varies, strict=True)]
    return out, [0 if v else None for v in varies]


def _bind(call: Call, values: Sequence[Any], sizes: tuple[int, ...], flags: Sequence[tuple[bool, ...]]) -> list[Any]:
    operands = [Operand(v, f) for v, f in zip(values, flags, strict=True)]
    return bind(call.function, sizes, operands, taped=call.taped, linear=call.linear)


def _varying(call: Call, dims: Sequence[int | None]) -> list[bool]:
    function = call.function
    mapped = {i for i, d in zip(function.operands, dims, strict=False) if d is not None}
    residuals_mapped = any(d is not None for d in dims[len(function.operands) :])
    depends = dict(zip(function.results, function.dependencies, strict=True))
    return [residuals_mapped or bool(depends[i] & mapped) for i in call.results]


def _nothing(call: Call, values: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """Of no elements. What does not depend on the operands that are mapped is there all the same."""
    varies = _varying(call, dims)
    out: list[Any] = [jnp.zeros((0, *t.shape), t.dtype) for t in call.types]
    if not all(varies):
        anything = [
            v if d is None else jnp.zeros(_without(v.shape, d), v.dtype) for v, d in zip(values, dims, strict=True)
        ]
        one = _bind(call, anything, call.batch.sizes, call.batch.flags)
        out = [empty if v else whole for empty, whole, v in zip(out, one, varies, strict=True)]
    return out, [0 if v else None for v in varies]


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]
