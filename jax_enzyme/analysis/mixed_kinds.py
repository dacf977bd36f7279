"""Memory in which numbers of several sizes may lie at one place, as far as types and places tell.

    struct { double d; float f[2]; } r[4];    r[i].f[j] is at a multiple of 4, and so may be a half of some r[k].d

Places are congruences: in a structure in an array, an array whose index only the run knows may be anywhere. Where the
source says what each access is of (`ToldApart`), that is believed; all else is told as the program runs
(`transform.number_kinds`).

    lattice     a set of objects, grown: those with two such accesses, or where copies, and words that are moved, may
                put the one over the other; those that memory is copied to and from. A group that copies join is left
                out as a whole where something is done with one of it that nobody could follow
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes
from jax_enzyme.analysis.objects import MemoryObject, Objects, call_effect, is_defined_call
from jax_enzyme.analysis.told_apart import ToldApart
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import reached
from jax_enzyme.rules.effects import Effect

_FOLLOWED = (Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.ALLOCATE, Effect.REALLOCATE, Effect.FREE, Effect.STACK)
_SIZES = (4, 8)
_Numbers: TypeAlias = Mapping[MemoryObject, Collection[Bytes]]


def mixed_objects(points_to: PointsTo, ranges: ByteRanges) -> Objects:
    """The objects of such groups."""
    apart = ToldApart(points_to, ranges, False)
    numbers = _numbers(ranges)
    found = {item for item, parts in numbers.items() if _is_mixed(apart, item, parts)}
    found |= _copied_over(ranges, numbers) | _moved_over(points_to, ranges, numbers)
    if not found:
        return frozenset()
    beside: dict[MemoryObject, set[MemoryObject]] = {}
    for one, other in _moves(points_to, ranges):
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    lost = _not_followed(points_to, ranges)
    groups = [frozenset(reached([item], lambda o: beside.get(o, ()))) for item in found]
    return frozenset[MemoryObject]().union(*(group for group in groups if lost.isdisjoint(group)))


def _copied_over(ranges: ByteRanges, numbers: _Numbers) -> set[MemoryObject]:
    """The objects to which numbers are copied where those of another size may lie."""
    return {
        copy.to
        for copy in ranges.copies
        for part in numbers.get(copy.item, ())
        if (moved := copy.moved(part)) is not None
        if any(moved.size != other.size and moved.meets(other) for other in numbers.get(copy.to, ()))
    }


def _moved_over(points_to: PointsTo, ranges: ByteRanges, numbers: _Numbers) -> set[MemoryObject]:
    """The same of words that are loaded and stored, in which numbers of several sizes may lie."""

    def sizes(access: I.Instruction) -> set[int]:
        found = ((part, numbers.get(item, ())) for item, part in ranges.accessed(access))
        return {other.size for part, others in found for other in others if part.meets(other)}

    lost = set[MemoryObject]()
    for store, words in _words(points_to):
        if len(sizes(store).union(*map(sizes, words))) > 1:
            lost |= points_to.written(store.operands[1])
    return lost


def _words(points_to: PointsTo) -> Iterator[tuple[I.Store, list[I.Load]]]:
    """Stores of integers that are loaded, and the loads."""
    for store in points_to.instructions():
        if isinstance(store, I.Store) and T.is_int(store.operands[0].type):
            words = [value for value in reached(store.operands[:1], I.merged) if isinstance(value, I.Load)]
            if words:
                yield store, words


def _moves(points_to: PointsTo, ranges: ByteRanges) -> Iterator[tuple[MemoryObject, MemoryObject]]:
    """From and to which objects memory is moved: by copies, and by words that are loaded and stored."""
    yield from ((copy.item, copy.to) for copy in ranges.copies)
    for store, words in _words(points_to):
        sources = [item for word in words for item in points_to.of(word.operands[0])]
        yield from product(sources, points_to.written(store.operands[1]))


def _numbers(ranges: ByteRanges) -> dict[MemoryObject, dict[Bytes, None]]:
    found: dict[MemoryObject, dict[Bytes, None]] = {}
    for accessed in (ranges.loads, ranges.stores):
        for item, parts in accessed.items():
            found.setdefault(item, {}).update(dict.fromkeys(part for part in parts if part.number))
    return found


def _is_mixed(apart: ToldApart, item: MemoryObject, parts: Iterable[Bytes]) -> bool:
    by_size: dict[int, list[Bytes]] = {}
    for part in parts:
        by_size.setdefault(part.size, []).append(part)

    def may_be_one(one: Bytes, other: Bytes) -> bool:
        if one.is_elsewhere(other):
            return False
        return not (one.typed and other.typed and apart.are_apart(item, one, other))

    return any(
        may_be_one(one, other)
        for size, ones in by_size.items()
        for other_size, others in by_size.items()
        if size < other_size
        for one in ones
        for other in others
    )


def _not_followed(points_to: PointsTo, ranges: ByteRanges) -> set[MemoryObject]:
    """Objects of which more is done than what can be followed byte by byte, or whose first content is unknown."""
    lost = {points_to.unknown}
    for function in points_to.functions:
        for access in accesses(points_to, function, ranges.layout):
            instruction = access.instruction
            match instruction:
                case I.Load() | I.Store():
                    type_ = I.accessed_value(instruction).type
                    type_ = T.scalar(type_) if T.is_float(type_) else type_
                    is_followed = isinstance(type_, T.IntType | T.PointerType) or (
                        isinstance(type_, T.FloatType) and ranges.layout.store_size(type_) in _SIZES
                    )
                case I.CallBase():
                    is_known = is_defined_call(instruction) or call_effect(instruction) in _FOLLOWED
                    is_followed = is_known or not access.writes
                case _:
                    is_followed = False
            lost |= set() if is_followed else set(access.objects)
    return lost
