"""The custom call: operands and results in the order and layout that the handler expects.

Every buffer of the function is an operand, a result, or (inout) both. Scratch buffers and discarded inout buffers are
results that nobody sees: XLA allocates them, so a call never does. A discarded inout buffer that the code leaves as it
is (the cotangent of an output, mostly) goes in like any other input: XLA would copy it where it is used elsewhere.

    buffer           operand   result
    in                  x
    out                           x
    scratch                       x     hidden
    inout               x         x     the result takes the operand's place; hidden where discarded

A batch is any number of leading dimensions; an operand may lack some of them, and is then shared along those. The
handler walks the batch by strides, so nothing is copied for that, except for inout operands: they need their own
copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.signature import NUMPY_NAMES
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.published import publish
from jax_enzyme.xla_ffi.recipe import encode
from jax_enzyme.xla_ffi.registration import CPU_TARGET

Flags = tuple[bool, ...]


@dataclass(frozen=True)
class Batch:
    """`sizes`: the batch dimensions, outermost first. `flags`: per operand, which of them it has. Results have all."""

    sizes: tuple[int, ...]
    flags: tuple[Flags, ...]

    @staticmethod
    def none(operands: int) -> Batch:
        return Batch((), ((),) * operands)

    @property
    def full(self) -> Flags:
        return (True,) * len(self.sizes)

    def shape(self, flags: Flags) -> tuple[int, ...]:
        """The batch dimensions that are flagged."""
        return tuple(size for size, flag in zip(self.sizes, flags, strict=True) if flag)


def signature_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a dtype of signatures."""
    return jnp.dtype(NUMPY_NAMES[name])


def buffer_type(buffer: Buffer, sizes: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """The type of a batch of one buffer."""
    return jax.ShapeDtypeStruct((*sizes, *buffer.shape), signature_dtype(buffer.dtype))


@dataclass(frozen=True)
class Target:
    """Who is called, and how. `buffers` are all that the function takes there; those that JAX knows of, the function's
    own, are numbered `visible`, in order; the others are working memory."""

    name: str
    key: str
    buffers: tuple[Buffer, ...]
    visible: tuple[int, ...]
    attributes: Mapping[str, np.ndarray]


def call(function: Function, batch: Batch, operands: Sequence[jax.Array]) -> list[jax.Array]:
    """Runs a function on the CPU, on a batch; `operands` and what comes back are in the order of its `operands` and
    `results`. Of a function that communicates a token comes last in both, which says what it runs behind."""
    key, read = publish(function)
    buffers = tuple(replace(b, io="in", discard=False) if i in read else b for i, b in enumerate(function.buffers))
    return invoke(function, Target(CPU_TARGET, key, buffers, tuple(range(len(buffers))), {}), batch, operands)


def invoke(function: Function, target: Target, batch: Batch, operands: Sequence[jax.Array]) -> list[jax.Array]:
    """The custom call of a function on a batch."""
    tokens = operands[len(function.operands) :]
    operands = operands[: len(function.operands)]
    buffers, number = target.buffers, target.visible
    given = dict(zip(function.operands, zip(operands, batch.flags, strict=True), strict=True))
    prepared = {i: _prepare(function, i, value, flags, batch) for i, (value, flags) in given.items()}
    returned = [i for i, buffer in enumerate(buffers) if buffer.io != "in"]
    arguments = {number[i]: n for n, i in enumerate(function.operands)}
    results = {i: n for n, i in enumerate(returned)}
    order = function.base.signature.order
    custom_call = jax.ffi.ffi_call(
        target.name,
        [*(buffer_type(buffers[i], batch.sizes) for i in returned), *map(jax.typeof, tokens)],
        has_side_effect=bool(tokens),
        input_layouts=[
            *(_layout(function.buffers[i], sum(prepared[i][1]), order) for i in function.operands),
            *(() for _ in tokens),
        ],
        output_layouts=[*(_layout(buffers[i], len(batch.sizes), order) for i in returned), *(() for _ in tokens)],
        input_output_aliases={arguments[i]: results[i] for i in returned if i in arguments},
    )
    everything = range(len(buffers))
    out = custom_call(
        *(prepared[i][0] for i in function.operands),
        *tokens,
        key=target.key,
        name=function.base.called,
        recipe=encode(function),
        arguments=np.array([arguments.get(i, -1) for i in everything], np.int32),
        results=np.array([results.get(i, -1) for i in everything], np.int32),
        sizes=np.array(batch.sizes or (1,), np.int64),
        strides=_strides(buffers, batch, {number[i]: flags for i, (_, flags) in prepared.items()}),
        **target.attributes,
    )
    return [*(_conjugate(function, i, out[results[number[i]]]) for i in function.results), *out[len(returned) :]]


def _prepare(function: Function, index: int, value: jax.Array, flags: Flags, batch: Batch) -> tuple[jax.Array, Flags]:
    value = _conjugate(function, index, value)
    buffer = function.buffers[index]
    if buffer.io == "in" or all(flags):
        return value, flags
    kept = [n for n, flag in enumerate(flags) if flag]
    core = range(len(flags), len(flags) + len(buffer.shape))
    return lax.broadcast_in_dim(value, (*batch.sizes, *buffer.shape), (*kept, *core)), batch.full


def _conjugate(function: Function, index: int, value: jax.Array) -> jax.Array:
    """Between the two conventions for complex cotangents.

    The engine sees a complex number as two reals, so its reverse is the adjoint under Re(conj(a) b). JAX's is the
    transpose under Re(a b). One is the other with every cotangent conjugated, on the way in and on the way out.
    """
    is_complex = function.buffers[index].dtype in ("c64", "c128")
    return lax.conj(value) if is_complex and index in function.cotangents else value


def _layout(buffer: Buffer, batch_rank: int, order: str) -> tuple[int, ...]:
    """Dimensions from the slowest to the fastest. Batch dimensions always are the slowest, directions the fastest."""
    rank = batch_rank + len(buffer.shape)
    core = range(batch_rank, rank - buffer.lanes)
    return (*range(batch_rank), *(reversed(core) if order == "F" else core), *range(core.stop, rank))


def _strides(buffers: Sequence[Buffer], batch: Batch, flags: dict[int, Flags]) -> np.ndarray:
    """Bytes from one batch element to the next, per batch dimension and buffer; 0 where a buffer is shared."""
    ranks = range(len(batch.sizes))
    strides = np.zeros((max(1, len(batch.sizes)), len(buffers)), np.int64)
    for i, buffer in enumerate(buffers):
        own = flags.get(i, batch.full)
        for d in ranks:
            inner = prod(batch.sizes[e] for e in ranks if e > d and own[e])
            strides[d, i] = buffer.nbytes * inner if own[d] else 0
    return strides.reshape(-1)
