"""What a step of the map of pointers has not seen yet: it looks again at that, and at nothing else.

%p = phi [ %r9, ... ], [ %next, ... ]     a list that a loop walks along: each visit finds one record more
%next = load ptr, ptr %p                  and reads that one, not those before it again
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.offsets import Offsets
from jax_enzyme.analysis.points_to_sets import Place
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Value


@dataclass(frozen=True, eq=False)
class Increments:
    """`grew` and `stored` note what changes; `fresh` and `unread` tell each step what of that is new to it."""

    _grown: dict[Value, list[MemoryObject | None]] = field(default_factory=dict[Value, list[MemoryObject | None]])
    _stored: dict[MemoryObject, int] = field(default_factory=dict[MemoryObject, int])
    _stores: list[MemoryObject] = field(default_factory=list[MemoryObject])
    _seen: dict[tuple[Value, Value], int] = field(default_factory=dict[tuple[Value, Value], int])
    _read: dict[I.Load, int] = field(default_factory=dict[I.Load, int])
    _copied: dict[tuple[Value, Value, MemoryObject, MemoryObject], tuple[int, Offsets, Offsets]] = field(
        default_factory=dict[tuple[Value, Value, MemoryObject, MemoryObject], tuple[int, Offsets, Offsets]]
    )

    def grew(self, value: Value, objects: Iterable[MemoryObject | None]) -> None:
        """A value may lead to more places in these objects."""
        self._grown.setdefault(value, []).extend(objects)

    def stored(self, item: MemoryObject) -> None:
        """An object holds more pointers."""
        self._stored[item] = self._stored.get(item, 0) + 1
        self._stores.append(item)

    def fresh(self, reader: Value, operand: Value, place: Place) -> Place:
        """The place of an operand, as far as a step has not seen it."""
        grown = self._grown.get(operand, [])
        key = (reader, operand)
        seen = self._seen.get(key, 0)
        self._seen[key] = len(grown)
        return {o: place[o] for o in dict.fromkeys(grown[seen:]) if o in place} if seen else place

    def unread(
        self, load: I.Load, targets: Iterable[MemoryObject], fresh: Collection[MemoryObject | None]
    ) -> list[MemoryObject]:
        """The targets of a load that are `fresh`, or in which there is more than when it was asked last."""
        new = {*fresh, *self._stores[self._read.get(load, 0) :]}
        self._read[load] = len(self._stores)
        return [o for o in targets if o in new] if new else []

    def copied(
        self, target: Value, source: Value, item: MemoryObject, here: Offsets, to: MemoryObject, there: Offsets
    ) -> bool:
        """Whether a copy has carried all that is in an object from these places to those; it is taken to do so now."""
        key, now = (target, source, item, to), (self._stored.get(item, 0), here, there)
        before = self._copied.get(key)
        self._copied[key] = now
        return before == now
