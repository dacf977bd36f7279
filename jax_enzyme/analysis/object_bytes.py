"""Bytes of an object as accesses have them, and where copies of memory move them to.

What is asked of two of them is whether they meet, for certain or maybe, and how one lies in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import TypeAlias

from jax_enzyme.analysis.congruence import ANY, Congruence, overlap
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.classes import dataclass, field, replace

_DOUBLE = 8
_ENDLESS = 1 << 62
"""More bytes than any memory has."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """`size` bytes at each offset of `at`, accessed as a `number` or as an integer. `typed`: the source says so too.

    `whole`: they are everywhere in the object. `start` is the constant part of the address: an array in a structure may
    have its elements at the same residues as what stands behind it, but not the same start. None: it is not known.
    `copies` is how often it was copied. `widened`: it stands for places without end, as copies around a cycle give
    them, and is held to be at each. `promised`: its bounds are those of a variable, or of what may have been copied, of
    which it may be any part. `grown`: its memory may not be there yet (null), as that which grows. `on_tape`: what the
    access says of that; None where it says nothing, or of copies. `member`: an integer, or a number that is shorter
    than a double, that is declared as one of a structure. `told`: whether it is such a number is looked at as the
    program runs."""

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
    told: bool = False
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


def ways_between(copies: Iterable[tuple[Copied, MemoryObject, MemoryObject]]) -> Ways:
    """Of copies, each with the object at the one end and that at the other."""
    found: dict[MemoryObject, dict[object, tuple[Copied, dict[MemoryObject, None]]]] = {}
    for copy, item, other in copies:
        found.setdefault(item, {}).setdefault(copy.way, (copy, {}))[1][other] = None
    return {item: list(ways.values()) for item, ways in found.items()}


OrderedSet = dict[Bytes, None]
"""Parts of an object in the order in which they were found, which is the same in every process."""
