"""How large memory objects are, what they are aligned to, and where in them an access can be.

An address that an analysis knows up to multiples of a stride, or that it has carried along a copy, may lie outside of
its object. Nothing can be there. Nor where an access is not aligned as it promises:

    store ptr %p, ptr %a, align 8        %a somewhere in memory from malloc, nobody knows where: at a multiple of 8
"""

from __future__ import annotations

from math import gcd, prod

from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import ALLOCATORS, HEAP_ALIGNMENT, MemoryObject, call_effect, is_heap_block
from jax_enzyme.analysis.polynomials import Leaf, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.tbaa import Share
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.rules.effects import Effect

ADDRESSES = frozenset("getelementptr add sub mul shl".split())
"""What addresses are computed with, in 64 bits: as their closed forms say, whether or not the condition holds behind
which that is done. A cast may rely on it."""
_SIZED = "dereferenceable("
_MOST = 64
"""An alignment beyond this tells nothing: the place stays as it is."""


def allocation_size(call: I.CallBase) -> int | None:
    """The constant number of bytes that an allocation call asks for, or None."""
    if call_effect(call) is not Effect.ALLOCATE:
        return None
    name = call.callee.name
    sizes = [int_value(v) for v in call.arguments]
    if name not in ALLOCATORS or None in sizes:
        return None
    return prod(size for size in sizes if size is not None)


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


def left(layout: DataLayout, item: MemoryObject, place: Congruence) -> int | None:
    """The bytes that an object has from a place on, at most; None where that is not known."""
    size = argument_size(item.site) if isinstance(item.site, Argument) else room(layout, item)
    return None if size is None or place.span is None else max(size - place.span[0], 0)


def argument_size(argument: Argument) -> int | None:
    """The bytes of a buffer of an array function, as its parameter says them."""
    for word in argument.attributes:
        if word.startswith(_SIZED):
            return int(word[len(_SIZED) : -1])
    return None


def is_inside(facts: Recurrences, layout: DataLayout, access: I.Load | I.Store, base: Value, at: BasicBlock) -> bool:
    """Whether an access lies in the buffer `base` of an array function wherever control goes from the block `at`. What
    is known of integers that are made elsewhere may hold there alone, as of `1 << j` behind `j < 9`."""
    size = argument_size(base) if isinstance(base, Argument) else None
    try:
        distance = facts.form(access.operands[-1]).polynomial - facts.form(base).polynomial
    except TooComplex:
        return False
    homes = [facts.block_of.get(atom.value) for atom in distance.atoms if isinstance(atom, Leaf)]
    if size is None or not all(home is None or facts.dominators.dominates(home, at) for home in homes):
        return False
    reach = facts.interval(distance)
    return 0 <= reach.low <= reach.high <= size - layout.store_size(I.accessed_value(access).type)


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
    if share is None or place.modulus == 0 or room(layout, item) != share.size:
        return place
    return place.within(share.first, share.last + 1 - size)


def room(layout: DataLayout, item: MemoryObject) -> int | None:
    """The same also of a global variable: of one of Fortran, what its unit has of it."""
    if isinstance(item.site, GlobalVariable):
        return layout.alloc_size(item.site.value_type) if layout.is_sized(item.site.value_type) else None
    return extent(layout, item)


def aligned(layout: DataLayout, item: MemoryObject) -> int:
    """A power of two of which the address of an object is a multiple, as far as that is known here."""
    match item.site:
        case I.Alloca() as local:
            return local.align or layout.align(local.allocated_type)
        case I.CallBase() if is_heap_block(item):
            return HEAP_ALIGNMENT
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
