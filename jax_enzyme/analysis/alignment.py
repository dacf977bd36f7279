"""What the alignment that an access promises tells about its place in a memory object.

store ptr %p, ptr %a, align 8        %a somewhere in memory from malloc, nobody knows where: at a multiple of 8
"""

from __future__ import annotations

from math import gcd

from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import int_value

_HEAP = 16
_NATURAL = frozenset("malloc calloc realloc _Znwm _Znam".split())
_MOST = 64
"""An alignment beyond this tells nothing: the place stays as it is."""


def aligned(layout: DataLayout, item: MemoryObject) -> int:
    """A power of two of which the address of an object is a multiple, as far as that is known here."""
    match item.site:
        case I.Alloca() as local:
            return local.align or layout.align(local.allocated_type)
        case I.CallBase() as call if call.callee.name in _NATURAL:
            return _HEAP
        case I.CallBase() as call if call.callee.name == "aligned_alloc":
            given = int_value(call.operands[0])
            return given & -given if given else 1
        case _:
            return 1


def at_multiple(place: Congruence, unit: int) -> Congruence:
    """The places among these that are multiples of a unit; all of them where that would be none."""
    if place.modulus == 0 or place.modulus % unit == 0 or unit > _MOST:
        return place
    for offset in range(place.offset, place.offset + place.modulus * unit, place.modulus):
        if offset % unit == 0:
            return Congruence.of(offset, place.modulus * unit // gcd(place.modulus, unit))
    return place
