"""The primitive: one bound call of a derived function on a batch, and what its parameters mean.

Every kernel has one JAX primitive, named after it; its only parameter is a `Call`. Kernel, forward derivative,
pullback and what derives from them are all calls of it, told apart by the function they run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import jax
from jax import numpy as jnp
from jax.core import ShapedArray

from jax_enzyme.cache import digest
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.arrays import Augmented, Jvp, Vjp
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.calls import calls_of
from jax_enzyme.primitives.compat import Primitive
from jax_enzyme.primitives.directions import call_in_directions
from jax_enzyme.primitives.sharding import arranged, mapped, partitioned, result_types
from jax_enzyme.xla_ffi.call import Batch, Flags, buffer_type
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.recipe import encode


class _Fields(NamedTuple):
    function: Function
    batch: Batch
    taped: bool
    linear: bool
    marker: Any


class Call(_Fields):
    """`batch.flags` covers all operands. `taped`: the operands are followed by what the augmented function kept, so
    that a pullback need not run the kernel again. `linear`: only the results that are linear in the last step's
    tangents."""

    def __new__(cls, function: Function, batch: Batch, taped: bool = False, linear: bool = False) -> Call:
        return super().__new__(
            cls, function, batch, taped, linear, compat.partitioning_marker() if batch.sizes else None
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Call) and self[:4] == other[:4])

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self[:4])

    def on(self, function: Function, batch: Batch, taped: bool) -> Call:
        """The same results of another function."""
        return Call(function, batch, taped, self.linear)

    def __repr__(self) -> str:
        extra = (
            [f"batch={self.batch.sizes}"] * bool(self.batch.sizes) + ["taped"] * self.taped + ["linear"] * self.linear
        )
        return " ".join([repr(self.function), *extra])

    @cached_property
    def results(self) -> tuple[int, ...]:
        """The buffers of the function that come out."""
        return self.function.linear_results if self.linear else self.function.results

    @property
    def own_flags(self) -> tuple[Flags, ...]:
        """The batch flags of the function's operands, without those of residuals."""
        return self.batch.flags[: len(self.function.operands)]

    @property
    def residual_flags(self) -> tuple[Flags, ...]:
        return self.batch.flags[len(self.function.operands) :]

    @property
    def types(self) -> list[jax.ShapeDtypeStruct]:
        return [buffer_type(self.function.buffers[i], self.batch.sizes) for i in self.results]


@dataclass(frozen=True)
class Operand:
    """A value for one operand, and which batch dimensions it has."""

    value: Any
    flags: Flags


def bind(
    function: Function,
    sizes: tuple[int, ...],
    operands: Sequence[Operand],
    *,
    taped: bool = False,
    linear: bool = False,
) -> list[Any]:
    """Calls a function; the results are in the order of `Call.results`."""
    call = Call(function, Batch(sizes, tuple(o.flags for o in operands)), taped, linear)
    values = arranged([o.value for o in operands], call.batch.flags)
    return primitive(function.base.name).bind(*values, call=call)


def operands_of(call: Call, values: Sequence[Any]) -> dict[int, Operand]:
    """The function's operands by buffer, without residuals."""
    pairs = zip(call.function.operands, values, call.batch.flags, strict=False)
    return {i: Operand(value, flags) for i, value, flags in pairs}


def residuals_of(call: Call, values: Sequence[Any]) -> list[Operand]:
    """The residuals that follow the function's operands in a taped call."""
    count = len(call.function.operands)
    return [Operand(v, f) for v, f in zip(values[count:], call.residual_flags, strict=True)]


@cache
def primitive(name: str) -> Primitive:
    """The primitive of the kernels of this name."""
    from jax_enzyme.primitives.rules import install_rules  # the rules bind primitives themselves

    made = Primitive(name)
    install_rules(made)
    return made


def compiled(made: Primitive, *, call: Call) -> Callable[..., Any]:
    """What runs a call for operands that are no tracers, compiled once for the program that it belongs to."""

    def compile_call() -> Callable[..., Any]:
        def run(*operands: Any) -> Any:
            return made.bind(*operands, call=call)

        run.__name__ = run.__qualname__ = made.name
        return jax.jit(compat.as_primitive(run))

    return calls_of(call.function.base.program.key).get(call, compile_call)


def types(*operands: Any, call: Call) -> list[ShapedArray]:
    """The rule for the types of the results."""
    return result_types(operands, call.batch, call.types)


def communicates(*, call: Call) -> bool:
    """Whether calls are in one order on all processes: those of kernels that call MPI."""
    return call.function.base.communicates


def lower(*values: Any, call: Call, split: str, platform: str) -> list[Any]:
    """The rule for lowering. `split`: whether a batch is divided among several devices, and who says how: the types of
    the operands ("by type"), or XLA, which asks for a rule ("by rule"). A call that communicates has a token behind its
    operands and results."""
    there = call.function.on(platform)
    if split == "no" or not call.batch.sizes:
        return _lower(*values, call=call, there=there)
    if communicates(call=call):
        raise LoweringError(
            f"`{call.function.base.name}` calls MPI: its batches cannot be divided among devices",
            remedy="one device for each process of MPI",
        )

    def run(batch: Batch) -> Callable[..., list[Any]]:
        return partial(_lower, call=call.on(call.function, batch, call.taped), there=there)

    ranks = [jnp.ndim(v) for v in values], [len(t.shape) for t in call.types]
    if split == "by type":
        return mapped(run, call.batch, ranks, values)(*values)
    name = f"{call.function.base.name}_{digest(repr(call) + encode(there))[:16]}"
    return partitioned(run, call.batch, ranks, name)(*values)


def _lower(*values: Any, call: Call, there: Function) -> list[Any]:
    """The custom call, with the pullback in the place of a Vjp where there is a tape for it. Programs and traces show
    the name of the function. `there` is the function on the platform that this is for; a tape fits only the platform
    that the call was traced for, and is neither written nor read on another."""
    function = call.function
    at_home = there.base.platform == function.base.platform
    if call.linear:
        there.require_repeatable()
    with jax.named_scope(repr(function)):
        if call.taped and at_home and isinstance(there.last, Vjp):
            return _pull_back(call, there, values)
        tokens = values[len(call.batch.flags) :]
        taping = isinstance(there.last, Augmented)
        running = there if at_home or not taping else there.parent
        batch = Batch(call.batch.sizes, call.own_flags)
        results = call_in_directions(running, batch, [*values[: len(function.operands)], *tokens])
    by_buffer = dict(zip(running.results, results, strict=False))
    kinds = zip(call.results, call.types, strict=True)
    found = [by_buffer[i] if i in by_buffer else jnp.zeros(kind.shape, kind.dtype) for i, kind in kinds]
    return [*found, *results[len(running.results) :]]


def _pull_back(call: Call, function: Function, values: Sequence[Any]) -> list[Any]:
    pullback = function.pullback
    own = {(b.role, b.of): i for i, b in enumerate(function.buffers) if b.is_input}
    given = operands_of(call, values)
    residuals = iter(residuals_of(call, values[: len(call.batch.flags)]))
    operands: list[Operand] = []
    for i in pullback.operands:
        buffer = pullback.buffers[i]
        if buffer.role in ("final", "tape"):
            operands.append(next(residuals))
        else:
            operands.append(given[own["primal" if buffer.role == "initial" else "shadow", buffer.of]])
    batch = Batch(call.batch.sizes, tuple(o.flags for o in operands))
    tokens = values[len(call.batch.flags) :]
    return call_in_directions(pullback, batch, [*(o.value for o in operands), *tokens])


def reverse_step(base: Function, wanted: frozenset[int], seeded: frozenset[int]) -> Function:
    """The Vjp of a function for the cotangents of these inputs, given those of these outputs, by buffer."""
    everything = range(len(base.buffers))
    return base.then(Vjp(tuple(i in wanted for i in everything), tuple(i in seeded for i in everything)))


def forward_step(base: Function, active: frozenset[int]) -> Function:
    """The Jvp of a function for tangents of these buffers."""
    return base.then(Jvp(tuple(i in active for i in range(len(base.buffers)))))


def seedable(base: Function) -> frozenset[int]:
    """The results of a function that can have cotangents."""
    return frozenset(i for i in base.results if base.buffers[i].is_floating)
