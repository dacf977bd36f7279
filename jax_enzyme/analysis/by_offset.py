"""What memory objects hold, place by place: a map from an object's places (`Congruence`) to what an analysis keeps.

A place stands for all bytes that it may be, so what is put at one is found wherever the two may overlap, and nothing is
ever taken away. An object with too many places has one for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import reduce
from typing import Generic, TypeVar

from jax_enzyme.analysis.congruence import ANY, Congruence, overlap

_MANY = 128
Item = TypeVar("Item", bound=Hashable)
Held = TypeVar("Held")


class ByOffset(Generic[Item, Held]):
    """What is held at places of items, `unit` bytes each. `join` gives both of two; it changes neither."""

    def __init__(self, unit: int, join: Callable[[Held, Held], Held]) -> None:
        self._unit = unit
        self._join = join
        self._items: dict[Item, dict[Congruence, Held]] = {}

    def add(self, item: Item, at: Congruence, held: Held) -> bool:
        """Puts something at a place; whether that was news."""
        places = self._items.setdefault(item, {})
        if len(places) >= _MANY and at not in places:
            everything = reduce(self._join, places.values())
            places.clear()
            places[ANY] = everything
        at = ANY if ANY in places else at
        old = places.get(at)
        new = held if old is None else self._join(old, held)
        if new == old:
            return False
        places[at] = new
        return True

    def overlapping(self, item: Item, at: Congruence, size: int | None) -> Iterator[tuple[Congruence, Held]]:
        """What may lie in so many bytes from a place on, and where (None: up to the end, or before it)."""
        for place, held in list(self._items.get(item, {}).items()):
            if size is None or overlap(place, self._unit, at, size):
                yield place, held
