"""What pointers lie where in a memory object: `{ int *n; double *x; }` leads to integers at byte 0, numbers at byte 8.

first       `PointsTo` joins all pointers in an object, and `Places` finds at which offsets each access is
then        `PointsTo` is solved again: a load finds what stores at offsets that it may meet have left there
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from jax_enzyme.analysis.congruence import ANY
from jax_enzyme.analysis.memory import MemoryObject, Objects, Place, PointsTo
from jax_enzyme.analysis.places import Places
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Value

_MANY = 64
"""With more places than this in an object, they are not told apart."""


class Fields:
    """Pointers by object and place, for a `PointsTo` that is being solved."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: dict[MemoryObject, dict[Place, Objects]] = {}

    def put(self, item: MemoryObject, places: list[Place], held: Objects) -> bool:
        """Pointers into `held` are stored in `item`; whether that is news."""
        known = self._found.setdefault(item, {})
        if len(known) > _MANY:
            places = [(ANY, 1)]
        changed = False
        for place in places:
            before = known.get(place, frozenset())
            if not held <= before:
                known[place] = before | held
                changed = True
        return changed

    def at(self, pointer: Value, item: MemoryObject, size: int) -> list[Place]:
        """Where in an object `size` bytes behind a pointer are."""
        offsets = self._places.each_of(pointer).get(item)
        return [(ANY, 1)] if offsets is None else [(c, size) for c in offsets]

    def held(self, item: MemoryObject, places: list[Place]) -> Objects:
        """What pointers in these bytes of an object lead to."""
        known = self._found.get(item, {})
        return frozenset[MemoryObject]().union(
            *(held for place, held in known.items() if any(_meet(place, other) for other in places))
        )

    def copied(self, target: Value, source: Value) -> Iterator[tuple[MemoryObject, Place, Objects]]:
        """What a copy brings into each object that it goes to."""
        there, here = self._places.of(target), self._places.of(source)
        for item, start in here.items():
            for (at, size), held in list(self._found.get(item, {}).items()):
                for to, end in there.items():
                    yield to, (at + (end - start), size), held


def _meet(one: Place, other: Place) -> bool:
    """Whether two places may have a byte in common."""
    (a, size), (b, room) = one, other
    unit, apart = gcd(a.modulus, b.modulus), a.offset - b.offset
    if unit == 0:
        return -size < apart < room
    return apart % unit < room or -apart % unit < size


def _mixes(points_to: PointsTo) -> bool:
    """Whether a pointer is loaded from an object that holds several."""
    mixed = {o for o, held in points_to.contents.items() if len(held) > 1 and o is not points_to.unknown}
    return bool(mixed) and any(
        isinstance(i, I.Load) and not T.is_float(i.type) and not mixed.isdisjoint(points_to.of(i.operands[0]))
        for function in points_to.functions
        for i in function.instructions()
    )


def points_to_by_field(module: Module, root: Function) -> PointsTo:
    """The relation, with pointers in memory told apart by their places where there are any to tell apart."""
    points_to = PointsTo(module, root)
    if _mixes(points_to):
        points_to.refine(Fields(Places(points_to)))
    return points_to
