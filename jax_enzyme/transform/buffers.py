"""The buffers of an array function: what its signature says, with the sizes of a call."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES, Buffer
from jax_enzyme.ir.values import Argument
from jax_enzyme.signature import Binding, Signature

_MAX_ALIGN = 16


def buffers_of(signature: Signature, binding: Binding) -> tuple[Buffer, ...]:
    """The buffers of the primal array function."""
    dims, constants = dict(binding.dims), signature.constants(binding)
    buffers = [
        Buffer(p.name, p.dtype, signature.shape(p.name, dims), p.direction, of=i, zero=p.direction == "out")
        for i, p in enumerate(p for p in signature.params if p.name not in constants)
    ]
    returned = [
        Buffer(p.name, p.dtype, signature.extents(p, dims), "out", of=len(buffers) + i, zero=True)
        for i, p in enumerate(signature.returned)
    ]
    return (*buffers, *returned)


def argument_of(index: int, buffer: Buffer) -> Argument:
    """The parameter of an array function that a buffer is."""
    align = min(ITEM_BYTES[buffer.dtype], _MAX_ALIGN)
    size = (f"dereferenceable({buffer.nbytes})",) if buffer.nbytes else ()
    return Argument(T.PTR, ("noalias", "noundef", f"align {align}", *size), index, name=buffer.name)
