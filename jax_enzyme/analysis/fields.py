"""Where in each memory object which pointers are stored: what makes `memory.PointsTo` tell members from each other.

    lattice     per object a map from places (`Congruence`, of 8 bytes each) to sets of objects; a place that is
                anywhere, where there would be many
    join        union, place by place
    store       adds to the places that an address may be; a load takes what may overlap with what it loads
    copy        moves what is at the source by the distance of the two addresses

The places of addresses are those that `analysis.places` finds over a first solution without members. What that says
includes what is so with members, so it holds for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.congruence import ANY, Congruence, copied_to, overlap
from jax_enzyme.analysis.layout import DataLayout, addresses
from jax_enzyme.analysis.memory import NOTHING, MemoryObject, Objects, PointsTo
from jax_enzyme.analysis.places import Offsets, Places
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Constant, Value

_POINTER = 8
_MANY = 128
"""With pointers at more places in an object, each of them may be anywhere in it."""
_ANYWHERE: Offsets = frozenset([ANY])


def points_to_by_place(module: Module, root: Function) -> PointsTo:
    """The solution that tells members from each other, where there are pointers in memory."""
    coarse = PointsTo(module, root)
    holds_pointers = any(held for item, held in coarse.contents.items() if item is not coarse.unknown)
    if not holds_pointers:
        return coarse
    places = Places(coarse)
    found = _ByPlace(coarse, places)
    return found if places.follows_all(found) else _ByPlace(coarse, Places(coarse, follows=False))


class _ByPlace(PointsTo):
    """A `PointsTo` with contents by place: `contents` has what is anywhere in an object."""

    def __init__(self, coarse: PointsTo, places: Places) -> None:
        self._coarse = coarse
        self._places = places
        self._layout = DataLayout(coarse.module)
        self._fields: dict[MemoryObject, dict[Congruence, Objects]] = {}
        self._addresses: dict[Value, Mapping[MemoryObject, Offsets]] = {}
        super().__init__(coarse.module, coarse.root)

    def _object(self, kind: str, site: Value) -> MemoryObject:
        """The same objects as in the first solution."""
        known = self._coarse.objects.get(site)
        if known is None:
            return super()._object(kind, site)
        if site not in self.objects:
            self.objects[site] = known
            self.contents.setdefault(known, NOTHING)
        return known

    def _unknown_object(self) -> MemoryObject:
        return self._coarse.unknown

    def _caller_object(self) -> MemoryObject:
        return self._coarse.caller

    def _fill(self, target: MemoryObject, objects: Objects) -> None:
        self._add(target, ANY, objects)

    def _start(self, item: MemoryObject, value: Constant) -> None:
        for offset, held in addresses(self._layout, value):
            self._add(item, Congruence(offset, 0), self.of(held))

    def _put(self, held: Objects, pointer: Value, value: Value) -> None:
        if not held:
            return
        parts = [Congruence(offset, 0) for offset in range(0, self._layout.store_size(value.type), _POINTER)]
        for target in self.written(pointer):
            for at in self._at(pointer, target):
                for part in parts:
                    self._add(target, at + part, held)

    def _loaded(self, pointer: Value, type_: T.Type | None) -> Objects:
        if type_ is None:
            return super()._loaded(pointer, type_)
        size = self._layout.store_size(type_)
        found: set[MemoryObject] = set()
        for item in self.of(pointer):
            if item is self.unknown:
                found.add(item)
                continue
            for at in self._at(pointer, item):
                found.update(*(held for _, held in self._overlapping(item, at, size)))
        return frozenset(found)

    def _copy(self, target: Value, source: Value, length: int | None) -> None:
        for item in self.of(source):
            if item is self.unknown:
                super()._copy(target, source, length)
                continue
            for here in self._at(source, item):
                for place, held in list(self._overlapping(item, here, length)):
                    for to in self.written(target):
                        for there in self._at(target, to):
                            self._add(to, copied_to(place, _POINTER, here, there, length), held)

    def _at(self, pointer: Value, item: MemoryObject) -> Offsets:
        if pointer not in self._addresses:
            self._addresses[pointer] = self._places.within(pointer)
        return self._addresses[pointer].get(item, _ANYWHERE)

    def _overlapping(
        self, item: MemoryObject, at: Congruence, size: int | None
    ) -> Iterator[tuple[Congruence, Objects]]:
        """What may lie in so many bytes from a place on (None: up to the end, or before it)."""
        self._work.read(item)
        for place, held in self._fields.get(item, {}).items():
            if size is None or overlap(place, _POINTER, at, size):
                yield place, held

    def _add(self, item: MemoryObject, at: Congruence, objects: Objects) -> None:
        if item is self.unknown or not objects:
            return
        fields = self._fields.setdefault(item, {})
        if len(fields) >= _MANY and at not in fields:
            everything = frozenset[MemoryObject]().union(*fields.values())
            fields.clear()
            fields[ANY] = everything
        at = ANY if ANY in fields else at
        if not objects <= fields.get(at, NOTHING):
            fields[at] = fields.get(at, NOTHING) | objects
            self.contents[item] = self.contents.get(item, NOTHING) | objects
            self._work.changed(item)
