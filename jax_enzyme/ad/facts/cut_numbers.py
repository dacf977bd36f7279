"""Copies and clearings of memory of which only the run knows whether they cut a number in two.

    memcpy(to, from, n)     with doubles at multiples of 8 of both objects

    `n`, `to` and `from` are known to be such multiples     whole numbers are moved
    one of them may be something else                       unsure: the derivative looks at the places as it runs

What is known of places and lengths are congruences (`PointsTo`); what certainly cuts a number that is read is refused
(`ad.facts.bits`). Where they stand at no multiples of one size, `ad.emit.cut_numbers` looks at how they are laid out
around the addresses; where nobody knows that either, nothing is checked.
"""

from __future__ import annotations

from collections.abc import Collection

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.congruence import Congruence, overlap
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.tbaa import copied_type
from jax_enzyme.analysis.words import DTYPES, Words
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.effects import Effect

_SIZES = (4, 8)
_INSIDE = Congruence(1, 0)
BEYOND = 8
"""So much of a number may lie behind the end of memory, as far as is known of where it begins."""


@dataclass(frozen=True)
class Grid:
    """Where numbers may stand behind an aligned address: at multiples of `size` from `start` on in what is written, and
    from `source_start` on in what is copied. `alone`: all of them have this size, else it is that of the shortest."""

    size: int
    start: int
    source_start: int
    alone: bool


def addresses(call: I.CallBase) -> tuple[Value, ...]:
    """What a copy, or a clearing, writes to, and what it copies."""
    return tuple(call.operands[: 1 + (call_effect(call) is Effect.MEMORY_COPY)])


def is_unsure(words: Words, activity: Activity, call: I.CallBase) -> bool:
    """Whether a copy, or a clearing, may cut numbers in two as far as is known."""
    points_to = words.points_to
    if call_effect(call) not in (Effect.MEMORY_COPY, Effect.MEMORY_SET):
        return False
    if copied_type(points_to.module, call) is not None:
        return False
    pointers = addresses(call)
    if any(activity.varied_objects.isdisjoint(points_to.of(pointer)) for pointer in pointers):
        return False
    length = points_to.number(call.operands[2])
    return any(_may_cut(points_to, activity, pointer, length) for pointer in pointers)


def looked_at(words: Words, activity: Activity) -> frozenset[MemoryObject]:
    """Memory in which numbers are looked at, and overwritten, that may lie across its end: shadows have room."""
    calls = (i for i in words.points_to.instructions() if isinstance(i, I.CallBase))
    asked = [call for call in calls if is_unsure(words, activity, call)]
    return frozenset(item for call in asked for p in addresses(call) for item in words.points_to.of(p))


def grid(words: Words, activity: Activity, call: I.CallBase) -> Grid | None:
    """The multiples of a size at which all numbers stand that a call writes or copies; None where that cannot be told
    of what is there."""
    items = [words.points_to.of(pointer) & activity.varied_objects for pointer in addresses(call)]
    numbers = [[part for item in of_pointer for part in _numbers(words, activity, item)] for of_pointer in items]
    sizes = {part.size for parts in numbers for part in parts}
    size = min(sizes, default=0)
    if size not in _SIZES or not all(activity.numbers.is_in_units(item, size) for item in frozenset().union(*items)):
        return None
    starts = [{_remainder(part, size) for part in parts} for parts in numbers]
    first, last = (found.pop() if len(found) == 1 else None for found in (starts[0], starts[-1].copy()))
    return None if first is None or last is None else Grid(size, first, last, alone=len(sizes) == 1)


def _may_cut(points_to: PointsTo, activity: Activity, pointer: Value, length: Congruence) -> bool:
    """Whether so many bytes behind an address may begin or end within a number."""
    for item, at in points_to.place(pointer).items():
        for number in activity.numbers.of(item):
            begin = at - number.at
            if any(overlap(end, 1, _INSIDE, number.size - 1) for end in (begin, begin + length)):
                return True
    return False


def _numbers(words: Words, activity: Activity, item: MemoryObject) -> Collection[Bytes]:
    """The numbers of an object, as they are declared, read or written there; as they are copied, where nothing else
    tells: a copy to anywhere says nothing."""
    buffer = words.buffers.get(item.site) if isinstance(item.site, Argument) else None
    if buffer is not None and (kind := DTYPES.get(buffer.dtype)) is not None:
        return [Bytes(Congruence(0, kind.size), kind.size)]
    loads = activity.numbers.ranges.loads.get(item, {})
    found = [part for part, own in loads.items() if any(T.is_float(load.type) for load in own)]
    found += (part for part in activity.numbers.of(item) if not part.copies)
    return found or activity.numbers.of(item)


def _remainder(part: Bytes, size: int) -> int | None:
    """That of the places of numbers by a size, where they have one."""
    return None if part.size % size or part.at.modulus % size else part.at.offset % size
