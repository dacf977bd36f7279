"""Which objects a pointer may point to, with what is stored in memory told apart by its place.

`memory.PointsTo` takes a record for a bag: whoever loads one of its pointers may get any of them. In a list of layers
that have a pointer to their numbers and one to the next layer, numbers would be stored into layers. Here the relation
is solved a second time, with the byte offsets that `places.Places` has found from the first:

    lattice     P(objects) per SSA value; per object, for each range of bytes (a congruence and a size), P(objects)
    transfer    a load gets what was stored at ranges that may overlap its own; a copy moves ranges along
    names       what the source stores as a pointer it does not load as an integer (`analysis.tbaa`)
    sound       since the places are: they were found where every pointer was taken to lead to more

Where that finds nothing that a pointer could lead to, and the first relation did, the first one's answer stands.
"""

from __future__ import annotations

from jax_enzyme.analysis.congruence import ANY, Congruence
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import NOTHING, MemoryObject, Objects, PointsTo
from jax_enzyme.analysis.places import Places, Range, members, overlap
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Constant, Value, int_value

_LARGE = 20_000
"""With more instructions than this, exactness costs more time than a user has."""
_MANY = 32
"""Beyond so many ranges in one object, it is a bag again."""


def points_to_of(module: Module, root: Function, known: PointsTo | None = None) -> PointsTo:
    """The relation for all functions that `root` can reach, as exact as it is worth; `known` is the first one."""
    coarse = PointsTo(module, root) if known is None else known
    size = sum(len(block.instructions) for function in coarse.functions for block in function.blocks)
    if size > _LARGE or not any(len(held) > 1 for held in coarse.contents.values()):
        return coarse
    return _ByPlace(coarse, Places(coarse))


class _ByPlace(PointsTo):
    def __init__(self, coarse: PointsTo, places: Places) -> None:
        self._coarse = coarse
        self._places = places
        self._layout = DataLayout(coarse.module)
        self._held: dict[MemoryObject, dict[tuple[Range, bool], Objects]] = {}
        self._solved = False
        super().__init__(coarse.module, coarse.root, coarse)
        self._solved = True

    def of(self, value: Value) -> Objects:
        found = super().of(value)
        return found if found or not self._solved else self._coarse.of(value)

    def _ranges(self, pointer: Value, size: int) -> list[tuple[MemoryObject, Range]]:
        offsets = self._places.each_of(pointer)
        return [(item, (at, size)) for item in super().of(pointer) for at in offsets.get(item, (ANY,))]

    def _note(self, item: MemoryObject, where: Range, objects: Objects, named: bool) -> None:
        held = self._held.setdefault(item, {})
        if (where, named) not in held and len(held) >= _MANY:
            where = (ANY, 1)
        if not objects <= held.get((where, named), NOTHING):
            held[where, named] = held.get((where, named), NOTHING) | objects
            self._schedule.changed(item)
        super()._fill(item, objects, named)

    def _fill(self, target: MemoryObject, objects: Objects, named: bool = False) -> None:
        if target is not self.unknown:
            self._note(target, (ANY, 1), objects, named)

    def _start_with(self, item: MemoryObject, value: Constant) -> None:
        for offset, part in members(self._layout, value):
            if held := super().of(part):
                self._note(item, (Congruence(offset, 0), self._layout.store_size(part.type)), held, named=True)

    def _put(self, held: Objects, pointer: Value, value: Value, access: I.Instruction) -> None:
        if held:
            for item, where in self._ranges(pointer, self._layout.store_size(value.type)):
                if item is not self.unknown:
                    self._note(item, where, held, self.name(access) == T.PTR)

    def _loaded(self, pointer: Value, like: Value, access: I.Instruction) -> Objects:
        found = NOTHING
        plain = self.name(access) == T.I1
        self._schedule.reads(self.of(pointer))
        for item, where in self._ranges(pointer, self._layout.store_size(like.type)):
            if item is self.unknown:
                found |= self.contents[item]
            else:
                held = self._held.get(item, {}).items()
                found = found.union(*(o for (r, named), o in held if not (named and plain) and overlap(r, where)))
        return found

    def _move(self, target: Value, source: Value, length: Value | None) -> None:
        size = None if length is None else int_value(length)
        self._schedule.reads(self.of(source))
        for item, (at, _) in self._ranges(source, 1):
            held = {((ANY, 1), False): self.contents[item]} if item is self.unknown else dict(self._held.get(item, {}))
            for ((where, width), named), objects in held.items():
                if size is not None and not overlap((where, width), (at, size)):
                    continue
                for to, (there, _) in self._ranges(target, 1):
                    if to is not self.unknown:
                        self._note(to, (where + (there - at), width), objects, named)
