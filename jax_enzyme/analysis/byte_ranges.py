"""Which bytes of each memory object the accesses of a program touch, and what its copies of memory do to them.

accesses    what a load or a store touches in each object that its address may lead to, number by number, and all
            loads and stores by what they touch
starts      the constant part of an address: what tells an array in a structure from a member behind it
copies      those that move bytes alike are followed once for all objects that they lead to
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice, product
from math import gcd
from typing import TypeVar

from jax_enzyme.analysis.congruence import MANY, Congruence, repeated
from jax_enzyme.analysis.extents import extent, inside, left, promised
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes, Copied, OrderedSet, Place, Ways, ways_between
from jax_enzyme.analysis.objects import MemoryObject, copy_operands, is_copy, is_resize
from jax_enzyme.analysis.tbaa import accessed_type, common_share, copied_type, is_member, is_on_tape
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import is_told
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import ConstantNull, Poison, Undef, Value
from jax_enzyme.remembered import remembered

A = TypeVar("A", I.Load, I.Store)


class _Unsettled:
    """What is not known of a phi yet."""


_UNSETTLED = _Unsettled()


class ByteRanges:
    """The ranges of bytes that accesses touch, for the functions of one `PointsTo`."""

    def __init__(self, points_to: PointsTo) -> None:
        self._points_to = points_to
        self._module: Module = points_to.module
        self.layout = DataLayout(self._module)

    @remembered
    def accessed(self, access: I.Instruction) -> tuple[Place, ...]:
        """What a load, a store or an atomic operation touches in each object, number by number."""
        return tuple(self._accessed(access))

    def _accessed(self, access: I.Instruction) -> Iterator[Place]:
        touched = I.accessed(access)
        assert touched is not None
        pointer, type_ = touched
        source = accessed_type(self._module, access)
        typed = source is not None and T.is_float(source) == T.is_float(type_)
        start, member = self._start(pointer), typed and is_member(self._module, access)
        share, on_tape = common_share(self._module, access), is_on_tape(self._module, access)
        grown, told = self._root(pointer)[0] in self._grown, is_told(access)
        for item, offsets in self._points_to.within(pointer).items():
            for at, (offset, element) in product(offsets, tuple(self.layout.scalars(type_))):
                size = self.layout.store_size(element)
                here = at + Congruence(offset, 0)
                place = promised(here, size, share, self.layout, item)
                first = None if start is None else start + offset
                number = T.is_float(element)
                part = Bytes(place, size, typed, number, first, grown=grown, on_tape=on_tape, member=member, told=told)
                yield item, part if place == here else replace(part, promised=True)

    @cached_property
    def loads(self) -> Mapping[MemoryObject, Mapping[Bytes, Sequence[I.Load]]]:
        """The loads of the program, by what they touch."""
        return self._by_part(I.Load)

    @cached_property
    def stores(self) -> Mapping[MemoryObject, Mapping[Bytes, Sequence[I.Store]]]:
        """Its stores."""
        return self._by_part(I.Store)

    def _by_part(self, kind: type[A]) -> dict[MemoryObject, dict[Bytes, list[A]]]:
        found: dict[MemoryObject, dict[Bytes, list[A]]] = {}
        for access in (i for i in self._points_to.instructions() if isinstance(i, kind)):
            for item, part in self.accessed(access):
                found.setdefault(item, {}).setdefault(part, []).append(access)
        return found

    @cached_property
    def copies(self) -> Sequence[Copied]:
        """All copies of memory of the program."""
        calls = (i for i in self._points_to.instructions() if isinstance(i, I.CallBase) and is_copy(i))
        return [copy for call in calls for copy in self.copied(call)]

    @cached_property
    def copies_of(self) -> Ways:
        """The same by what they copy, with all that is copied to alike."""
        return ways_between((copy, copy.item, copy.to) for copy in self.copies)

    @cached_property
    def _copies_to(self) -> Ways:
        """The same by what they copy to, with all that is copied there alike."""
        return ways_between((copy, copy.to, copy.item) for copy in self.copies)

    def called(self, pointer: Value, kind: T.FloatType) -> Iterator[Place]:
        """What a routine touches that is given an array of numbers, which are of the type that it has them."""
        size, start = self.layout.store_size(kind), self._start(pointer)
        for item, at in self._points_to.place(pointer).items():
            yield item, Bytes(Congruence.of(at.offset, gcd(at.modulus, size)), size, typed=True, start=start)

    def behind(self, pointer: Value, size: int) -> Iterator[Place]:
        """So many bytes behind an address, of whatever."""
        start = self._start(pointer)
        for item, at in self._points_to.place(pointer).items():
            yield item, Bytes(at, size, number=False, start=start)

    def copied(self, call: I.CallBase) -> Iterator[Copied]:
        """What a copy of memory, or its reallocation, does to each pair of objects."""
        target, source, length = copy_operands(call)
        kind = copied_type(self._module, call)
        if kind == T.I1:
            return
        typed = None if is_resize(call) else kind is not None
        for to, there in self._points_to.place(target).items():
            for item, here in self._points_to.place(source).items():
                rest = [n for n in (left(self.layout, to, there), left(self.layout, item, here)) if n is not None]
                yield Copied(to, there, item, here, length, typed, min(rest, default=None))

    @cached_property
    def _most_copies(self) -> int:
        """How often anything can be copied that never comes back to an object where it was."""
        functions = self._points_to.functions
        calls = [i for f in functions for i in f.instructions() if isinstance(i, I.CallBase) and is_copy(i)]
        return len(frozenset[MemoryObject]().union(*(self._points_to.of(copy_operands(c)[0]) for c in calls)))

    def settled(self, item: MemoryObject, part: Bytes, known: Collection[Bytes]) -> Bytes | None:
        """A part of an object, beside those that are known, so that there is an end to them: one that was copied more
        often than there are objects to copy to has gone around a cycle, where each round may move it. Where there are
        many, it is wherever it comes round again, for certain: that may refuse, and never overlooks. None: outside of
        the object."""
        if part.whole:
            return part
        place = inside(part.at, part.size, extent(self.layout, item))
        if place is None:
            return None
        part = replace(part, at=place, start=part.start if place.modulus else place.offset)
        if part.copies <= self._most_copies or len(known) < MANY:
            return part
        alike = [p.at for p in known if (p.size, p.number) == (part.size, part.number)]
        return replace(part, at=repeated(part.at, alike), start=None, widened=True)

    def noted(self, item: MemoryObject, part: Bytes, known: OrderedSet) -> Bytes | None:
        """Adds a part of an object, settled, to those that are known; None: it was there, or is outside of it."""
        settled = None if part in known else self.settled(item, part, known)
        if settled is None or settled in known:
            return None
        known[settled] = None
        return settled

    def noted_in(
        self, items: Iterable[MemoryObject], part: Bytes | None, found: dict[MemoryObject, OrderedSet]
    ) -> Iterator[Place]:
        """Adds a part, if there is one, to those of several objects; where it is news."""
        if part is None:
            return
        for item in items:
            if (new := self.noted(item, part, found.setdefault(item, {}))) is not None:
                yield item, new

    def carry_back(self, found: dict[MemoryObject, OrderedSet]) -> None:
        """Adds to the parts of each object, in place, those of which they may be copies."""
        pending = [(item, part) for item in self._copies_to for part in found.get(item, ())]
        while pending:
            item, part = pending.pop()
            for copy, sources in self._copies_to.get(item, ()):
                pending += self.noted_in(sources, copy.moved_back(part), found)

    def _start(self, pointer: Value) -> int | None:
        """The constant part of an address."""
        root, distance = self._root(pointer)
        start = self._phi_starts.get(root) if isinstance(root, I.Phi) else self._root_start(root)
        return start + distance if isinstance(start, int) else None

    def _root(self, pointer: Value) -> tuple[Value, int]:
        """What an address is computed from by adding to it, and the constants that are added."""
        distance = 0
        while True:
            match pointer:
                case I.GetElementPtr(operands=[base, *indices]):
                    distance += self.layout.steps(pointer.source_type, indices)[0]
                    pointer = base
                case I.Cast(opcode="addrspacecast" | "bitcast", operands=[base]) | I.Freeze(operands=[base]):
                    pointer = base
                case _:
                    return pointer, distance

    def _root_start(self, root: Value) -> int | _Unsettled | None:
        if root in self._points_to.objects:
            return 0
        if isinstance(root, ConstantNull | Undef | Poison):
            return _UNSETTLED  # nothing is there
        places = [c for offsets in self._points_to.within(root).values() for c in offsets]
        return places[0].offset if places and set(places) == {Congruence(places[0].offset, 0)} else None

    @cached_property
    def _phi_starts(self) -> Mapping[I.Phi, int | _Unsettled | None]:
        """The same of phis: what comes in, where that is one. The phi's own, moved on, is an element further on."""
        found = [i for i in self._points_to.instructions() if isinstance(i, I.Phi)]
        incoming = {p: [self._root(v) for v in p.operands] for p in found if T.is_pointer(p.type)}
        users: dict[Value, list[I.Phi]] = {}
        for phi, roots in incoming.items():
            for root, _ in roots:
                users.setdefault(root, []).append(phi)

        def start(phi: I.Phi, facts: Mapping[I.Phi, int | _Unsettled | None]) -> int | _Unsettled | None:
            starts = set[int | None]()
            for root, distance in incoming[phi]:
                before = facts[root] if isinstance(root, I.Phi) else self._root_start(root)
                if root is not phi and not isinstance(before, _Unsettled):
                    starts.add(None if before is None else before + distance)
            return (starts.pop() if len(starts) == 1 else None) if starts else _UNSETTLED

        return fixpoint(list(incoming), lambda phi: users.get(phi, ()), start, _UNSETTLED)

    @cached_property
    def _grown(self) -> Set[Value]:
        """Phis of pointers that may be null, by way of other phis too."""
        users: dict[Value, list[Value]] = {}
        for phi in (i for i in self._points_to.instructions() if isinstance(i, I.Phi)):
            for value in phi.operands if T.is_pointer(phi.type) else ():
                users.setdefault(self._root(value)[0], []).append(phi)
        null = [phi for root, phis in users.items() if isinstance(root, ConstantNull) for phi in phis]
        return reached(null, lambda phi: users.get(phi, ())).keys()


@dataclass
class _Following:
    """A copy, all objects that it goes to alike, and how many parts of its source it has been followed for."""

    copy: Copied
    targets: Iterable[MemoryObject]
    done: int = 0

    def moved(self, parts: Collection[Bytes]) -> list[Bytes]:
        """Where those that are new come to lie."""
        new = list(islice(parts, self.done, None))
        self.done = len(parts)
        return [moved for part in new if (moved := self.copy.moved(part)) is not None]


class Followed:
    """Copies of memory, each followed once for each part of its source, while parts are being found."""

    def __init__(self, ranges: ByteRanges) -> None:
        self._ranges = ranges
        self._copies: dict[I.CallBase, list[_Following]] = {}

    def moved(self, call: I.CallBase, parts: Callable[[MemoryObject], Collection[Bytes]]) -> Iterator[Place]:
        """Where the parts of its sources that were not there the last time come to lie."""
        if (copies := self._copies.get(call)) is None:
            ways = ways_between((copy, copy.item, copy.to) for copy in self._ranges.copied(call))
            copies = self._copies[call] = [_Following(*way) for of_source in ways.values() for way in of_source]
        for each in copies:
            yield from product(each.targets, each.moved(parts(each.copy.item)))
