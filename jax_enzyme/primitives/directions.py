"""Batches of tangents or cotangents of one point (jacfwd, jacrev, hessian): several in one call, side by side.

    operand of a batch of k       [k, n]  ->  [k / lanes, n, lanes]      filled up with zeros
    result                        the way back

The value is then computed once for so many directions, and what is linear in vectors. A batch that the points vary in,
too, and a derivative that cannot be computed so (`transform.directions`), is called for one element after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax import lax
from jax import numpy as jnp

from jax_enzyme.ir.arrays import is_linear
from jax_enzyme.xla_ffi.call import Batch
from jax_enzyme.xla_ffi.dispatch import call_on
from jax_enzyme.xla_ffi.function import Function

_FEWEST, _MOST = 4, 8
"""Directions that are worth a vector, and those that are in one: 64 bytes of doubles."""
_CACHE = 1 << 19
"""Tangents of more bytes than this, the second level of a cache, come in the smaller vectors."""


def call_in_directions(function: Function, batch: Batch, operands: Sequence[Any]) -> list[Any]:
    """Runs a function that is for one platform on a batch; like `xla_ffi.call.call` otherwise."""
    run = call_on(function.base.platform)
    grouped = _grouped(function, batch)
    if grouped is None:
        return run(function, batch, operands)
    linear = set(function.linear_operands)
    given = zip(function.operands, operands, batch.flags, strict=True)
    values = [grouped.together(v, flags) if i in linear else v for i, v, flags in given]
    results = run(grouped.function, Batch(grouped.sizes, batch.flags), values)
    linear = set(function.linear_results)
    named = zip(function.results, results, strict=True)
    return [grouped.apart(r) if i in linear else grouped.repeated(r) for i, r in named]


@dataclass(frozen=True)
class _Grouped:
    """`function` is that for several directions; `count` elements in dimension `dim` of a batch become groups."""

    function: Function
    sizes: tuple[int, ...]
    dim: int
    count: int
    lanes: int

    def together(self, value: Any, flags: Sequence[bool]) -> Any:
        """An operand with its directions in the last dimension."""
        if not flags[self.dim]:
            return jnp.broadcast_to(value[..., None], (*jnp.shape(value), self.lanes))
        at = sum(flags[: self.dim])
        missing = self.sizes[self.dim] * self.lanes - self.count
        padding = [(0, missing if axis == at else 0) for axis in range(value.ndim)]
        filled = jnp.pad(value, padding) if missing else value
        split = filled.reshape(*value.shape[:at], self.sizes[self.dim], self.lanes, *value.shape[at + 1 :])
        return jnp.moveaxis(split, at + 1, -1)

    def apart(self, result: Any) -> Any:
        """A result with its directions in the dimension of the batch."""
        moved = jnp.moveaxis(result, -1, self.dim + 1)
        padded = self.sizes[self.dim] * self.lanes  # no -1: an array may have no elements
        whole = moved.reshape(*result.shape[: self.dim], padded, *moved.shape[self.dim + 2 :])
        return lax.slice_in_dim(whole, 0, self.count, axis=self.dim)

    def repeated(self, result: Any) -> Any:
        """A result that is the same for all directions."""
        one = lax.slice_in_dim(result, 0, 1, axis=self.dim)
        return jnp.broadcast_to(one, (*one.shape[: self.dim], self.count, *one.shape[self.dim + 1 :]))


def _grouped(function: Function, batch: Batch) -> _Grouped | None:
    step = function.last
    if step is None:
        return None
    linear = set(function.linear_operands)
    marked = [(i in linear, flags) for i, flags in zip(function.operands, batch.flags, strict=True)]
    for dim, count in enumerate(batch.sizes):
        if count < _FEWEST or any(flags[dim] for is_linear, flags in marked if not is_linear):
            continue
        if not any(flags[dim] for _, flags in marked):
            continue
        size = _MOST * sum(b.nbytes for b in function.buffers if is_linear(b, step))
        lanes = _FEWEST if count == _FEWEST or size > _CACHE else _MOST
        wide = function.in_directions(lanes)
        if wide is None:
            return None
        sizes = (*batch.sizes[:dim], -(-count // lanes), *batch.sizes[dim + 1 :])
        return _Grouped(wide, sizes, dim, count, lanes)
    return None
