"""How large memory objects are, and what fits into them.

An address that an analysis knows up to multiples of a stride, or that it has carried along a copy, may lie outside of
its object. Nothing can be there.
"""

from __future__ import annotations

from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.tbaa import Share
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import int_value
from jax_enzyme.rules.effects import Effect


def allocation_size(call: I.CallBase) -> int | None:
    """The constant number of bytes that an allocation call asks for, or None."""
    if call_effect(call) is not Effect.ALLOCATE:
        return None
    name = call.callee.name
    sizes = [int_value(v) for v in call.arguments]
    if name == "calloc":
        return None if None in sizes else sizes[0] * sizes[1]  # type: ignore[operator]
    if name == "malloc" or name in ("_Znwm", "_Znam"):
        return sizes[0]
    return None


def extent(layout: DataLayout, item: MemoryObject) -> int | None:
    """The bytes of an object of constant size, else None."""
    match item.site:
        case I.Alloca() as local:
            count = int_value(local.operands[0])
            return None if count is None else count * layout.alloc_size(local.allocated_type)
        case I.CallBase() as call:
            return allocation_size(call)
        case _:
            return None


def inside(place: Congruence, size: int, room: int | None) -> Congruence | None:
    """Where so many bytes fit into an object with this room, at one of these places: the only one, if there is one
    alone; None where they do not fit."""
    if room is None:
        return place
    first = place.offset if place.modulus == 0 else place.offset % place.modulus
    if not 0 <= first <= room - size:
        return None
    return Congruence(first, 0) if place.modulus and first + place.modulus > room - size else place


def promised(place: Congruence, size: int, share: Share | None, layout: DataLayout, item: MemoryObject) -> Congruence:
    """Where so many bytes of a variable in a COMMON block are, at one of these places in an object: what has the size
    of the block is the block, and not what an optimiser has left of it."""
    if share is None or place.modulus == 0 or _room(layout, item) != share.size:
        return place
    return place.within(share.first, share.last + 1 - size)


def _room(layout: DataLayout, item: MemoryObject) -> int | None:
    if isinstance(item.site, GlobalVariable):
        return layout.alloc_size(item.site.value_type)
    return extent(layout, item)
