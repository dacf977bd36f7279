"""At which bytes of each memory object numbers that vary may stand.

An integer that is loaded there may be the bits of a number, and one that is loaded elsewhere is an integer, whatever
else its object holds: `struct { double v; long k; }`, in an array or not, has numbers at bytes 0 to 7 of every 16.

    lattice     per object a set of ranges of bytes (`Congruence`, size), grown while activity is solved
    integers    what the source calls an integer (`long` by its TBAA) is not held to be the bits of what it stored as a
                number (`double`), unless both are known to lie at one place: old programs read the words of a `double`
                by way of an `int *`; others use their memory again, as `turns` tells
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice, product
from math import gcd
from typing import TypeAlias, TypeVar

from jax_enzyme.analysis.congruence import ANY, MANY, Congruence, overlap, repeated
from jax_enzyme.analysis.extents import aligned, extent, inside, left, promised, room
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, copy_operands, is_copy, is_resize
from jax_enzyme.analysis.tbaa import accessed_type, common_share, copied_type, is_member, is_on_tape
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import ConstantNull, Poison, Undef, Value
from jax_enzyme.remembered import remembered

A = TypeVar("A", I.Load, I.Store)

WORD = 64
"""Bits of an integer in which a double has room."""
_DOUBLE = 8
_ENDLESS = 1 << 62
"""More bytes than any memory has."""


class _Unsettled:
    """What is not known of a phi yet."""


_UNSETTLED = _Unsettled()


@dataclass(frozen=True, slots=True)
class Bytes:
    """`size` bytes at each offset of `at`, accessed as a `number` or as an integer. `typed`: the source says so too.

    `whole`: they are everywhere in the object. `start` is the constant part of the address: an array in a structure may
    have its elements at the same residues as what stands behind it, but not the same start. None: it is not known.
    `copies` is how often it was copied. `widened`: it stands for places without end, as copies around a cycle give
    them, and is held to be at each. `promised`: its bounds are those of a variable, or of what may have been copied, of
    which it may be any part. `grown`: its memory may not be there yet (null), as that which grows. `on_tape`: what the
    access says of that; None where it says nothing, or of copies. `member`: an integer, or a number that is shorter
    than a double, that is declared as one of a structure."""

    at: Congruence
    size: int
    typed: bool = False
    number: bool = True
    start: int | None = None
    whole: bool = False
    guessed: bool = False
    widened: bool = False
    promised: bool = False
    grown: bool = False
    on_tape: bool | None = None
    member: bool = False
    copies: int = field(default=0, compare=False)

    def meets(self, other: Bytes) -> bool:
        """Whether two ranges may have a byte in common."""
        if self.whole or other.whole:
            return True
        return overlap(self.at, self.size, other.at, other.size)

    def is_elsewhere(self, other: Bytes) -> bool:
        """Whether they certainly have none."""
        return {self.on_tape, other.on_tape} == {True, False} or not self.meets(other)

    def certainly_meets(self, other: Bytes) -> bool:
        """Whether they have, as far as that can be told."""
        if self.is_elsewhere(other):
            return False
        if self.whole or other.whole:
            return True
        if self.widened or other.widened or (self._is_exact and other._is_exact):
            return self.meets(other)
        if self.start is None or other.start is None or not self.meets(other):
            return False
        return not self.begins_apart(other)

    def begins_apart(self, other: Bytes) -> bool:
        """Whether the constant parts of their addresses are known, and are of two places, as those of an array in a
        structure and of a member behind it are."""
        if self.start is None or other.start is None:
            return False
        return not -self.size < self.start - other.start < other.size

    def is_adrift(self, other: Bytes) -> bool:
        """Whether two accesses with different starts step by less than what they access, in memory that grows: records
        of any length in a stream of bytes, where the starts say nothing of whether they meet."""
        if not (self.grown or other.grown) or self.start is None or other.start is None or self.start == other.start:
            return False
        return gcd(self.at.modulus, other.at.modulus) % max(self.size, other.size) != 0

    def is_in_front_of(self, other: Bytes) -> bool:
        """Whether this is an integer of a structure's at one place, and the other one of an array's elements, none of
        which need be there."""
        is_element = other.at.modulus != 0 and not (other.whole or other.widened)
        return self.member and not self.number and self.size < other.size and self.at.modulus == 0 and is_element

    def is_last_byte(self, other: Bytes) -> bool:
        """Whether this is one byte, which has but the last digits of a double, as what stands for a missing one
        (`std::optional`): a number that is read beside it is the one that was there, to 44 digits."""
        apart = self.at - other.at
        return self.size == 1 and other.size == _DOUBLE and apart.offset % _DOUBLE == 0 == apart.modulus % _DOUBLE

    @property
    def _is_exact(self) -> bool:
        """At one place, or at every one from a first to a last."""
        if self.promised:
            return False
        return self.at.modulus == 0 or (self.at.last is not None and self.at.modulus == self.size)

    def fits(self, other: Bytes) -> bool:
        """Whether this holds whole numbers of the other one's size, as far as it is known where the two meet."""
        apart = self.at - other.at
        aligned = apart.modulus == 1 or apart.offset % other.size == 0 == apart.modulus % other.size
        return self.size % other.size == 0 and aligned

    def straddles(self, other: Bytes) -> bool:
        """Whether this, where the two meet, certainly holds parts of two numbers of the other one's size."""
        apart = self.at - other.at
        return apart.modulus % other.size == 0 and apart.offset % other.size != 0

    def cuts(self, other: Bytes) -> bool:
        """Whether this, where the two meet, certainly begins or ends within the other one."""
        begin, inside_other = self.at - other.at, Congruence(1, 0)
        if 0 < begin.modulus < other.size:
            return False
        ends = (begin, begin + Congruence(self.size, 0))
        return any(overlap(end, 1, inside_other, other.size - 1) for end in ends)

    def moved(self, by: Congruence) -> Bytes:
        start = self.start + by.offset if self.start is not None and by.modulus == 0 else None
        return replace(self, at=self.at + by, start=start)


Place: TypeAlias = tuple[MemoryObject, Bytes]


@dataclass(frozen=True)
class Copied:
    """A copy from a place in one object to a place in another; None as `length`: of any length. `typed` says that it
    is of nothing but numbers: others may be read at its target by another type. None: everything stays what it was."""

    to: MemoryObject
    there: Congruence
    item: MemoryObject
    here: Congruence
    length: int | None
    typed: bool | None
    most: int | None = None
    """The bytes that there are to be copied at most, as far as that is known of a copy of any length."""

    @property
    def way(self) -> object:
        """All but between which objects it is: copies that are alike in this move each part alike."""
        return self.there, self.here, self.length, self.typed, self.most, self.to is self.item

    def moved(self, part: Bytes) -> Bytes | None:
        """Where a part of the source is in the target; None where it is not copied."""
        if self._leaves(part, self.here):
            return None
        return self._clipped(part.moved(self.there - self.here), self.there)

    def moved_back(self, part: Bytes) -> Bytes | None:
        """Where a part of the target was in the source; None where it is not of it."""
        if self._leaves(part, self.there):
            return None
        return self._clipped(part.moved(self.here - self.there), self.here)

    def sources(self, parts: Iterable[Bytes]) -> Iterator[Bytes]:
        """Where parts of the target were in the source; where there are none, all of that may be copied."""
        known = [self.moved_back(part) for part in parts]
        if known:
            yield from (replace(part, typed=False) for part in known if part is not None)
        elif self.length is None:
            yield Bytes(ANY, 1, number=False, whole=True)
        else:
            start = self.here.offset if self.here.modulus == 0 else None
            yield Bytes(self.here, self.length, number=False, start=start)

    def _leaves(self, part: Bytes, place: Congruence) -> bool:
        """Whether what is copied has nothing of a part."""
        return self.length is not None and not part.meets(Bytes(place, self.length, number=False))

    def _clipped(self, part: Bytes, place: Congruence) -> Bytes | None:
        typed = part.typed if self.typed is None else self.typed
        part = replace(part, typed=typed, on_tape=None, copies=part.copies + 1)
        if self.length is None:
            if part.at.last is not None and self.there != self.here:
                part = replace(part, promised=True)
            return part if place.modulus else self._from(place.offset, part)
        start = place.offset if place.modulus == 0 else None
        range_ = Bytes(place, self.length, number=False, start=start)
        if part.whole:
            if start is None or not part.number:
                return replace(range_, copies=part.copies)
            part = replace(part, whole=False, start=part.at.offset, at=part.at.within(start, start + self.length - 1))
        if not part.meets(range_):
            return None
        if part.at.last is not None and start is not None:
            part = replace(part, at=part.at.within(start - part.size + 1, start + self.length - 1))
        if part.at.modulus == 0 or part.start is None or start is None:
            return part
        # Of an array, which starts in the range, wherever it did before.
        return replace(part, start=start + (part.at.offset - start) % part.at.modulus)

    def _from(self, first: int, part: Bytes) -> Bytes | None:
        """A part in a copy of any length to a known place: nothing changes in front of that. One that moves on within
        its object may do so again and again."""
        step = abs((self.there - self.here).offset) if self.to is self.item and self.here.modulus == 0 else 0
        if part.at.modulus == 0 and part.at.offset + part.size <= first:
            return None
        if step and not part.whole:
            part = replace(part, at=Congruence.of(part.at.offset, gcd(part.at.modulus, step)))
        if part.at.modulus == 0 or part.at.last is not None:
            return replace(part, at=part.at.within(first, _ENDLESS))
        end = first + (_ENDLESS if self.most is None else self.most) - part.size
        first += (part.at.offset - first) % part.at.modulus
        end -= (end - part.at.offset) % part.at.modulus
        place = Congruence.bounded(first, max(first, end), part.at.modulus)
        if part.whole:
            return replace(part, at=place, start=first, whole=False, widened=True)
        if part.start is not None and (step or part.start < first):
            part = replace(part, start=first)
        return replace(part, at=place, promised=True)


Ways: TypeAlias = Mapping[MemoryObject, Sequence[tuple[Copied, Iterable[MemoryObject]]]]
"""By the objects at one end of copies: one of those that are alike, with the objects at their other end."""


def _ways_between(copies: Iterable[tuple[Copied, MemoryObject, MemoryObject]]) -> Ways:
    """Of copies, each with the object at the one end and that at the other."""
    found: dict[MemoryObject, dict[object, tuple[Copied, dict[MemoryObject, None]]]] = {}
    for copy, item, other in copies:
        found.setdefault(item, {}).setdefault(copy.way, (copy, {}))[1][other] = None
    return {item: list(ways.values()) for item, ways in found.items()}


OrderedSet = dict[Bytes, None]
"""Parts of an object in the order in which they were found, which is the same in every process."""


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
        grown = self._root(pointer)[0] in self._grown
        for item, offsets in self._points_to.within(pointer).items():
            for at, (offset, element) in product(offsets, tuple(self.layout.scalars(type_))):
                size = self.layout.store_size(element)
                here = at + Congruence(offset, 0)
                place = promised(here, size, share, self.layout, item)
                first = None if start is None else start + offset
                number = T.is_float(element)
                part = Bytes(place, size, typed, number, first, grown=grown, on_tape=on_tape, member=member)
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
        return _ways_between((copy, copy.item, copy.to) for copy in self.copies)

    @cached_property
    def _copies_to(self) -> Ways:
        """The same by what they copy to, with all that is copied there alike."""
        return _ways_between((copy, copy.to, copy.item) for copy in self.copies)

    def called(self, pointer: Value, kind: T.FloatType) -> Iterator[tuple[MemoryObject, Bytes]]:
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

    def moved(
        self, call: I.CallBase, parts: Callable[[MemoryObject], Collection[Bytes]]
    ) -> Iterator[tuple[MemoryObject, Bytes]]:
        """Where the parts of its sources that were not there the last time come to lie."""
        if (copies := self._copies.get(call)) is None:
            ways = _ways_between((copy, copy.item, copy.to) for copy in self._ranges.copied(call))
            copies = self._copies[call] = [_Following(*way) for of_source in ways.values() for way in of_source]
        for each in copies:
            yield from product(each.targets, each.moved(parts(each.copy.item)))


class NumberBytes:
    """Where numbers that vary may stand. `inputs` are arrays of them from the start, or records, as far as the program
    reads numbers there. `read` is told of each object that is asked for, and `apart` makes, from where accesses are,
    what says of two parts of an object that they are never read as one another. Integers that are `moved` may be
    numbers whatever the source calls them."""

    def __init__(
        self,
        points_to: PointsTo,
        inputs: frozenset[MemoryObject],
        read: Callable[[MemoryObject], object],
        apart: Callable[[ByteRanges], Callable[[MemoryObject, Bytes, Bytes], bool]],
        moved: Container[Value],
    ) -> None:
        self._read = read
        self._make_apart = apart
        self._moved = moved
        self._points_to = points_to
        self.ranges = ByteRanges(points_to)
        self._inputs = inputs
        self._found: dict[MemoryObject, OrderedSet] = {}
        self._followed = Followed(self.ranges)

    def of(self, item: MemoryObject) -> Collection[Bytes]:
        self._read(item)
        return self._parts(item).keys()

    def _parts(self, item: MemoryObject) -> OrderedSet:
        """In the order in which they were found."""
        if (known := self._found.get(item)) is None:
            known = self._found[item] = dict(self._given.get(item, {}))
        return known

    @cached_property
    def _given(self) -> dict[MemoryObject, OrderedSet]:
        """The numbers of the inputs: where the program accesses numbers; everywhere, where it never does. Of what is
        copied away, what it accesses as numbers in the copies, and in copies of these; all, where nothing tells."""
        away = [copy for copy in self.ranges.copies if copy.item in self._inputs]
        accessed: dict[MemoryObject, OrderedSet] = {}
        for access in self._points_to.instructions():
            if not isinstance(access, I.Load | I.Store):
                continue
            if away or not self._inputs.isdisjoint(self._points_to.of(access.operands[-1])):
                for item, part in self.ranges.accessed(access):
                    if part.number:
                        accessed.setdefault(item, {})[replace(part, typed=False)] = None
        found = {
            item: [Bytes(p.at, p.size, start=p.start, whole=p.at.modulus == p.size) for p in accessed.get(item, ())]
            for item in self._inputs
        }
        if away:
            self.ranges.carry_back(accessed)
        for copy in away:
            found[copy.item] += copy.sources(accessed.get(copy.to, ()))
        everywhere = [Bytes(ANY, 1, number=False, whole=True)]
        return {item: dict.fromkeys(parts or everywhere) for item, parts in found.items()}

    # -- growing

    def stored(self, store: I.Instruction, value: Value) -> Collection[MemoryObject]:
        """A number that varies, or its bits, is stored; the objects for which that is news."""
        guessed = T.is_int(value.type) and not self._are_bits(value, set())
        return self._add((item, replace(part, guessed=guessed)) for item, part in self.ranges.accessed(store))

    def _are_bits(self, value: Value, seen: set[Value]) -> bool:
        """Whether an integer is the bits of a number, as far as that can be told."""
        if value in seen:
            return False
        seen.add(value)
        match value:
            case I.Cast(opcode="bitcast"):
                return T.is_float(value.operands[0].type)
            case I.Load():
                return self.are_read(value)
            case I.Phi() | I.Select() | I.Freeze():
                return any(self._are_bits(v, seen) for v in I.merged(value))
            case _:
                return False

    def written(self, pointer: Value, kind: T.FloatType) -> Collection[MemoryObject]:
        """A routine writes numbers that vary."""
        return self._add(self.ranges.called(pointer, kind))

    def copied(self, call: I.CallBase) -> Collection[MemoryObject]:
        """Memory is copied, of which numbers that vary may be a part."""
        return self._add(self._followed.moved(call, self.of))

    def _add(self, parts: Iterable[tuple[MemoryObject, Bytes]]) -> Collection[MemoryObject]:
        changed: dict[MemoryObject, None] = {}
        for item, part in list(parts):
            if item.is_constant:
                continue
            if self.ranges.noted(item, part, self._parts(item)) is not None:
                changed[item] = None
        return changed

    # -- asking

    def may_be_read(self, load: I.Instruction) -> bool:
        """Whether an integer that is loaded may be the bits of a number that varies."""
        return any(True for _ in self._meeting(load))

    def may_be_in(self, load: I.Load) -> bool:
        """Whether a pointer that is loaded may be one. What the source calls a pointer was stored as one."""
        return any(not part.typed or (other.typed and not other.number) for _, part, other in self._meeting(load))

    def are_read(self, load: I.Instruction) -> bool:
        """Whether it is, as far as that can be told. Elements of an array of doubles may only seem to begin at a member
        in front of it, as in `s->d[--s->n]`: there that is told as the derivative runs."""
        are_told = isinstance(load, I.Load) and self.are_doubles(load)
        return any(
            (part.certainly_meets(other) or self.are_mistaken(item, part, other))
            and not (part.is_adrift(other) or other.guessed or (are_told and part.is_in_front_of(other)))
            for item, part, other in self._meeting(load)
        )

    def are_doubles(self, access: I.Load | I.Store) -> bool:
        """Whether, as far as is known, there are numbers that vary under an access, all of them doubles with room
        around each byte."""
        return bool(self._under(access)) and self.are_at_most_doubles(access)

    def are_words(self, access: I.Load | I.Store) -> bool:
        """Whether the numbers that vary under an access begin at multiples of a double's size, and itself at one of
        its own."""
        places = self.ranges.accessed(access)
        return all(_is_multiple(part, part.size) and self._is_aligned(item) for item, part in places) and all(
            _is_multiple(number, _DOUBLE) for _, number in self._under(access)
        )

    def _is_aligned(self, item: MemoryObject) -> bool:
        """Allocators give aligned words, and so do those who pass arrays."""
        if isinstance(item.site, I.Alloca):
            return aligned(self.ranges.layout, item) % _DOUBLE == 0
        return not isinstance(item.site, GlobalVariable)

    def are_at_most_doubles(self, access: I.Load | I.Store) -> bool:
        """The same, or that there are none."""
        return all(o.size == _DOUBLE and self._has_room(item) for item, o in self._under(access))

    def _under(self, access: I.Load | I.Store) -> list[tuple[MemoryObject, Bytes]]:
        parts = self.ranges.accessed(access)
        return [(item, other) for item, part in parts for other in self.of(item) if part.meets(other)]

    def _has_room(self, item: MemoryObject) -> bool:
        """Allocators give whole words, for shadows as well."""
        return isinstance(item.site, I.CallBase) or (room(self.ranges.layout, item) or 0) % _DOUBLE == 0

    def _meeting(self, load: I.Instruction) -> Iterator[tuple[MemoryObject, Bytes, Bytes]]:
        is_pointer = T.is_pointer(load.type)
        places = self.ranges.accessed(load)
        for item, part in places:
            for other in self.of(item):
                is_told = part.typed and other.typed and other.number and load not in self._moved
                if part.meets(other) and not (is_told and (is_pointer or self.are_apart(item, part, other, places))):
                    yield item, part, other

    def are_apart(
        self, item: MemoryObject, part: Bytes, other: Bytes, places: Collection[tuple[MemoryObject, Bytes]]
    ) -> bool:
        """Whether the source tells two parts of an object from each other that are accessed by different types, as far
        as the types say: the first is of one of the `places` of an access, in another of which there is no number; or
        they are never read as one another (`ToldApart`)."""
        if not (part.typed and other.typed):
            return False
        is_same = part.number == other.number and part.size == other.size
        if is_same or part.whole or other.whole or part.is_elsewhere(other):
            return True
        others = (p for o, p in places if o is not item and not any(map(p.certainly_meets, self._parts(o))))
        return (part.certainly_meets(other) and any(others)) or self._are_never_read_as(item, part, other)

    def are_mistaken(self, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        """Whether two parts of an object that are accessed by different types are taken to be one, though it is not
        known that their places are. Of an integer whose type is not told, as where LLVM has put one access in the place
        of several, too."""
        if part.typed and other.typed:
            return not self.are_apart(item, part, other, ())
        is_one_of_several = not part.number and other.number and part.meets(other) and not other.whole
        return is_one_of_several and not self._are_never_read_as(item, part, other)

    @cached_property
    def _are_never_read_as(self) -> Callable[[MemoryObject, Bytes, Bytes], bool]:
        return self._make_apart(self.ranges)


def _is_multiple(part: Bytes, size: int) -> bool:
    return part.at.offset % size == 0 and part.at.modulus % size == 0
