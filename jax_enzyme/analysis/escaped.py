"""Memory that code outside of the module may reach, in classes.

    call @unknown(ptr %p)     what %p leads to, and all behind it, is one class from here on: whatever pointer leads
                              into it may lead anywhere in it, and to what the code outside has (`unknown`)

A call of unknown code may store any pointer that it can reach anywhere that it can reach. So each object of a class
holds the same pointers, and the class stands for them under one name: pointers that lead into it take constant room
however many its members are. Classes that share memory are one (union-find, the smaller one into the larger one);
constants and functions, where nothing is stored, may be in several.

Where places have grown beyond all measure, because one array of a program's holds whatever it has (a hash table with
records of all types), the objects with pointers that one value leads to are such a class as well, a *crowd*: nothing
outside of the module is in it. So are the constants that a value may lead to anywhere in (the tables that describe a
program's classes, which lead to each other, behind code that walks through whichever it is given); one that it leads to
at known places stays by itself, as a table of virtual functions. So the work stays bounded by the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from jax_enzyme.analysis.objects import NOTHING, MemoryObject, Objects
from jax_enzyme.analysis.offsets import ANYWHERE, Offsets, merge
from jax_enzyme.analysis.points_to_sets import Place
from jax_enzyme.ir.module import Function

_CROWD = 16
"""So many objects with pointers in them are told apart behind one value of a program that has crowds."""
_MANY_PLACES = 8
"""So many objects that a value may lead to are there for each instruction before a program has crowds."""
_FEW_INSTRUCTIONS = 2_500
"""A program is taken to have as many at least."""
_POINTER = 8


def _is_anywhere(offsets: Offsets) -> bool:
    """Whether any pointer in an object may be at one of these."""
    return any(c.last is None and 0 < c.modulus <= _POINTER for c in offsets)


class Escaped:
    """The classes, which only grow. `contents` are the objects (and classes) that the pointers in an object lead to,
    `changed` is told of each object and class that is not what it was. `length` is that of the program in
    instructions."""

    def __init__(
        self,
        unknown: MemoryObject,
        contents: Mapping[MemoryObject, Objects],
        changed: Callable[[MemoryObject], None],
        length: int,
    ) -> None:
        self._unknown = unknown
        self._contents = contents
        self._changed = changed
        self._class: dict[MemoryObject, MemoryObject] = {}
        """What an object, or a class that is no more, belongs to."""
        self._members: dict[MemoryObject, set[MemoryObject]] = {}
        self._names: set[MemoryObject] = set()
        self._crowds: set[MemoryObject] = set()
        self._room = _MANY_PLACES * max(length, _FEW_INSTRUCTIONS)
        self._expanded: dict[Objects, Objects] = {}

    def new(self) -> MemoryObject:
        """The name of a class without members yet."""
        name = MemoryObject("escaped")
        self._names.add(name)
        self._members[name] = set()
        return name

    def crowd(self, place: Place, more: int) -> tuple[MemoryObject, Objects] | None:
        """Where a place with so many objects more than before has too many: a class, and those that are to belong to
        it."""
        self._room -= more
        if self._room >= 0 or len(place) <= _CROWD:
            return None
        own = (o for o in place if o is not None and o is not self._unknown)
        found = frozenset(o for o in own if self._contents.get(o) and (not o.is_fixed or _is_anywhere(place[o])))
        if len(found) <= _CROWD:
            return None
        # Those that have tables in common are one: else each value would have one of its own, with the same in it.
        others = {n for n in map(self.of, found) if n is not None}
        others |= {n for n in self._crowds if not found.isdisjoint(self._members[n])}
        name = next(iter(others), None)
        if name is None:
            name = self.new()
            self._crowds.add(name)
        return name, found | others

    def names_in(self, objects: Objects) -> Objects:
        """The classes among objects."""
        return objects & self._names if self._names else NOTHING

    def of(self, item: MemoryObject | None) -> MemoryObject | None:
        """The class of an object, or the one that a class is part of now."""
        found = item if item in self._members else None
        while item in self._class:
            found = item = self._class[item]
        return found

    def owned(self, place: Mapping[MemoryObject, object]) -> list[MemoryObject]:
        """The classes in a place, what belongs to one, and what nothing is known of, in its order."""
        found = {self._unknown} | (place.keys() & self._class.keys()) | (place.keys() & self._members.keys())
        return [o for o in place if o in found] if len(found) > 1 or self._unknown in place else []

    def place(self, name: MemoryObject) -> Place:
        """Where a pointer from memory of a class may lead."""
        return {None: ANYWHERE, **dict.fromkeys(self.behind(name), ANYWHERE)}

    def behind(self, name: MemoryObject) -> list[MemoryObject]:
        """What the pointers in a class lead to."""
        return [name] if name in self._crowds else [name, self._unknown]

    def add(self, name: MemoryObject, objects: Iterable[MemoryObject]) -> list[Function]:
        """Objects, and all behind them, belong to a class; the functions that code outside can call from now on."""
        found: list[Function] = []
        pending = list(objects)
        while pending:
            item = pending.pop()
            name = self.of(name) or name
            other = self.of(item)
            if other is not None:
                found += self._unite(name, other)
            elif item is self._unknown:
                found += self._opened(name)
            elif item not in self._members[name]:
                self._members[name].add(item)
                if isinstance(item.site, Function):
                    found += [] if name in self._crowds else [item.site]
                elif not item.is_constant:
                    self._class[item] = name
                    self._changed(item)
                self._changes(name)
                pending += self._contents.get(item, NOTHING)
        return found

    def _opened(self, name: MemoryObject) -> list[Function]:
        """Code outside reaches a class; the functions that it can call because of that."""
        if name not in self._crowds:
            return []
        self._crowds.discard(name)
        for item in (*self._members[name], *(n for n in self._names if self.of(n) is name)):
            self._changed(item)
        return [o.site for o in self._members[name] if isinstance(o.site, Function)]

    def _unite(self, one: MemoryObject, other: MemoryObject) -> list[Function]:
        if one is other:
            return []
        found = [] if one in self._crowds and other in self._crowds else [*self._opened(one), *self._opened(other)]
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        self._members[one] |= self._members.pop(other)
        self._class[other] = one
        self._crowds.discard(other)
        self._changes(one)
        self._changes(other)
        return found

    def _changes(self, name: MemoryObject) -> None:
        self._expanded.clear()
        self._changed(name)

    def shortened(self, place: Place, known: Place) -> Place:
        """A place without the objects of classes that are in it (or in what is known already) as a whole."""
        if not self._names:
            return place
        named = [o for o in place if o in self._names]
        whole = dict.fromkeys(n for o in (*named, *known) if o in self._names and (n := self.of(o)) is not None)
        if not whole:
            return place
        found = {o: cs for o, cs in place.items() if o not in named}
        for name in whole:
            members = self._members[name]
            for each in (known, found):
                for item in [o for o in each if o in members]:
                    # What may be a part of a pointer beside it does not make less of an address.
                    if each.pop(item):
                        merge(found, {name: ANYWHERE}, 1)
        for name in named:
            merge(found, {self.of(name): place[name]}, 1)
        return found

    def expanded(self, objects: Objects) -> Objects:
        """The same objects with the members of classes in place of the classes."""
        if self._names.isdisjoint(objects):
            return objects
        found = self._expanded.get(objects)
        if found is None:
            classes = {name for o in objects & self._names if (name := self.of(o)) is not None}
            found = (objects - self._names).union(*(self._members[c] for c in classes))
            self._expanded[objects] = found
        return found
