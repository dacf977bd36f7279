"""At which bytes of each memory object numbers that vary may stand.

An integer that is loaded there may be the bits of a number, and one that is loaded elsewhere is an integer, whatever
else its object holds: `struct { double v; long k; }`, in an array or not, has numbers at bytes 0 to 7 of every 16.

    lattice     per object a set of ranges of bytes (`Congruence`, size), grown while activity is solved
    integers    what the source calls an integer (`long` by its TBAA) is not held to be the bits of what it stored as a
                number (`double`), unless both are known to lie at one place: old programs read the words of a `double`
                by way of an `int *`; others use their memory again, as `turns` tells
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from functools import cached_property

from jax_enzyme.analysis.byte_ranges import ByteRanges, Followed
from jax_enzyme.analysis.congruence import ANY
from jax_enzyme.analysis.extents import aligned, room
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes, OrderedSet, Place
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.classes import replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import Value

WORD = 64
"""Bits of an integer in which a double has room."""
_DOUBLE = 8


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
            item: [
                Bytes(p.at, p.size, start=p.start, whole=p.at.modulus == p.size, told=p.told)
                for p in accessed.get(item, ())
            ]
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

    def _add(self, parts: Iterable[Place]) -> Collection[MemoryObject]:
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

    def _is_aligned(self, item: MemoryObject, size: int = _DOUBLE) -> bool:
        """Allocators give aligned words, and so do those who pass arrays."""
        if isinstance(item.site, I.Alloca):
            return aligned(self.ranges.layout, item) % size == 0
        return not isinstance(item.site, GlobalVariable)

    def are_at_most_doubles(self, access: I.Load | I.Store) -> bool:
        """The same, or that there are none."""
        return all(o.size == _DOUBLE and self._has_room(item) for item, o in self._under(access))

    def _under(self, access: I.Load | I.Store) -> list[Place]:
        parts = self.ranges.accessed(access)
        return [(item, other) for item, part in parts for other in self.of(item) if part.meets(other)]

    def is_in_units(self, item: MemoryObject, size: int) -> bool:
        """Whether an object begins at a multiple of a size and has room for whole units of it, in its shadow too."""
        return self._is_aligned(item, size) and self._has_room(item, size)

    def _has_room(self, item: MemoryObject, size: int = _DOUBLE) -> bool:
        """Allocators give whole words, for shadows as well."""
        return isinstance(item.site, I.CallBase) or (room(self.ranges.layout, item) or 0) % size == 0

    def _meeting(self, load: I.Instruction) -> Iterator[tuple[MemoryObject, Bytes, Bytes]]:
        is_pointer = T.is_pointer(load.type)
        places = self.ranges.accessed(load)
        for item, part in places:
            for other in self.of(item):
                is_told = part.typed and other.typed and other.number and load not in self._moved
                if part.meets(other) and not (is_told and (is_pointer or self.are_apart(item, part, other, places))):
                    yield item, part, other

    def are_apart(self, item: MemoryObject, part: Bytes, other: Bytes, places: Collection[Place]) -> bool:
        """Whether the source tells two parts of an object from each other that are accessed by different types, as far
        as the types say: the first is of one of the `places` of an access, in another of which there is no number; or
        they are never read as one another (`ToldApart`), or it is looked at as the program runs whether they are."""
        if part.told and other.told and part.size != other.size:
            return True
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
