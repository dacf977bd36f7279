"""What a step of the map of pointers has not seen yet: it looks again at that, and at nothing else.

%p = phi [ %r9, ... ], [ %next, ... ]     a list that a loop walks along: each visit finds one record more
%next = load ptr, ptr %p                  and reads that one, not those before it again
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.offsets import Offsets
from jax_enzyme.analysis.points_to_sets import Place
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Value

Fields = dict[Congruence, None] | None
"""The places of some fields of an object, in order; None: all of them."""


@dataclass(frozen=True, eq=False)
class Increments:
    """`grew` and `stored` note what changes; `fresh` and `unread` tell each step what of that is new to it."""

    _grown: dict[Value, list[MemoryObject | None]] = field(default_factory=dict[Value, list[MemoryObject | None]])
    _stored: dict[MemoryObject, list[Congruence | None]] = field(
        default_factory=dict[MemoryObject, list[Congruence | None]]
    )
    _seen: dict[tuple[Value, Value], int] = field(default_factory=dict[tuple[Value, Value], int])
    _read: dict[tuple[I.Load, MemoryObject], int] = field(default_factory=dict[tuple[I.Load, MemoryObject], int])
    _copied: dict[tuple[Value, Value, MemoryObject, MemoryObject], tuple[int, Offsets, Offsets]] = field(
        default_factory=dict[tuple[Value, Value, MemoryObject, MemoryObject], tuple[int, Offsets, Offsets]]
    )

    def grew(self, value: Value, objects: Iterable[MemoryObject | None]) -> None:
        """A value may lead to more places in these objects."""
        self._grown.setdefault(value, []).extend(objects)

    def stored(self, item: MemoryObject, at: Congruence | None) -> None:
        """An object holds more pointers at a place; None: anywhere."""
        self._stored.setdefault(item, []).append(at)

    def fresh(self, reader: Value, operand: Value, place: Place) -> Place:
        """The place of an operand, as far as a step has not seen it."""
        grown = self._grown.get(operand, [])
        key = (reader, operand)
        seen = self._seen.get(key, 0)
        self._seen[key] = len(grown)
        return {o: place[o] for o in dict.fromkeys(grown[seen:]) if o in place} if seen else place

    def unread(
        self, load: I.Load, targets: Iterable[MemoryObject], fresh: Collection[MemoryObject | None]
    ) -> dict[MemoryObject, Fields]:
        """The targets of a load that are `fresh`, or in which there is more than when it was asked last, and in which
        fields of them."""
        found: dict[MemoryObject, Fields] = {}
        for item in targets:
            stored, key = self._stored.get(item, []), (load, item)
            seen = self._read.get(key, 0)
            if item in fresh:
                found[item] = None
            elif seen < len(stored):
                found[item] = reduce(_with, stored[seen:], {})
            self._read[key] = len(stored)
        return found

    def copied(
        self, target: Value, source: Value, item: MemoryObject, here: Offsets, to: MemoryObject, there: Offsets
    ) -> Fields:
        """The fields of an object that a copy from these places to those has not carried; it is taken to do so now."""
        key, stored = (target, source, item, to), self._stored.get(item, [])
        seen, *places = self._copied.get(key, (0, None, None))
        self._copied[key] = (len(stored), here, there)
        return reduce(_with, stored[seen:], {}) if places == [here, there] else None


def _with(fields: Fields, at: Congruence | None) -> Fields:
    if fields is None or at is None:
        return None
    fields[at] = None
    return fields
