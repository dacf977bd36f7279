"""The buffers of an array function: what its signature says, with the sizes of a call."""

from __future__ import annotations

from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.signature import Binding, Signature


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
