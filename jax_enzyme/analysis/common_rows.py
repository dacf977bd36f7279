"""What all iterations of a loop add to, beside places of their own in the same object.

In the reverse of a step of a factorisation,

    for i > k: for j > k: a[i][j] -= a[i][k] * a[k][j]

iteration i reads and changes what belongs to row i, and adds to what belongs to row k. Its own places have the number
of the iteration in their addresses, the common ones do not; they are apart where all of those of one kind certainly lie
before all of the other. The bounds of addresses follow from the loops around the access, the innermost one first: each
counts from 0 to how often it runs. In that of Cholesky's,

    for j > k: for i >= j: a[i][j] -= a[i][k] * a[j][k]

all add to column k, and to nothing else, and what else they touch leaves other remainders by the length of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.digits import NO_WRAP
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Atom, Iteration, Monomial, Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import full_count, is_known_before
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value

_Extent = tuple[Polynomial, Polynomial]
"""The first byte of an access, less the start of the object, and the last one, of all iterations of a loop."""
_MOST = 1 << 16
"""The bytes of a row."""


@dataclass(frozen=True)
class CommonRow:
    """Numbers of one type in an object, the first at byte `low` of it, the last one ends at `high`, `stride` bytes from
    one to the next, `most` bytes of numbers at most: only some accesses of a loop lead there, which add to them, and
    nowhere else. Both bounds are known before the loop; where nothing is added, there may be no object. `places`: where
    each of these would lead if the numbers lay one behind the other, in bytes from the first."""

    loop: Loop
    site: Value
    type: T.Type
    low: Polynomial
    high: Polynomial
    stride: int
    most: int
    places: Mapping[I.Load | I.Store, Polynomial]


@dataclass(frozen=True)
class CommonRows:
    """Those of a loop. `added_to`: of which type the numbers are that some accesses add, if they do nothing else."""

    facts: Recurrences
    layout: DataLayout
    loop: Loop
    added_to: Callable[[Sequence[Access]], T.Type | None]

    def of(self, item: MemoryObject, found: Iterable[Access]) -> CommonRow | None:
        """The row of an object, by its accesses in the loop, where all others are apart from it."""
        facts, loop = self.facts, self.loop
        if item.site is None or facts.block_of.get(item.site) in loop.blocks:
            return None
        offsets: dict[Access, Polynomial] = {}
        extents: dict[Access, _Extent] = {}
        for access in found:
            try:
                offset = _offset(facts, access, item.site) if len(access.objects) == 1 else None
                extent = _extent(facts, access, offset, loop) if offset is not None else None
            except TooComplex:
                return None
            if offset is None or extent is None:
                return None
            offsets[access], extents[access] = offset, extent
        still = [a for a, offset in offsets.items() if not offset.contains(facts.iteration(loop))]
        for common in (still, self._adding(offsets)):
            stride = self._stride([offsets[access] for access in common])
            for by in (None, stride) if stride else (None,):
                if (row := self._row(item.site, offsets, extents, common, by)) is not None:
                    return row
        return None

    def _adding(self, offsets: Mapping[Access, Polynomial]) -> list[Access]:
        """The accesses that add, by the places to which they lead."""
        groups: dict[frozenset[tuple[Monomial, int]], list[Access]] = {}
        for access, offset in offsets.items():
            groups.setdefault(frozenset(offset.terms.items()), []).append(access)
        return [access for group in groups.values() if self.added_to(group) is not None for access in group]

    def _stride(self, offsets: Iterable[Polynomial]) -> int:
        """By how many bytes the numbers of iterations change some places; 0 where they do not."""
        terms = [term for offset in offsets for term in offset.terms.items()]
        inside = (by for monomial, by in terms if any(self._is_inside(atom) for atom, _ in monomial))
        return gcd(*inside)

    def _is_inside(self, atom: Atom) -> bool:
        return isinstance(atom, Iteration) and self.loop.encloses(atom.loop)

    def _row(
        self,
        site: Value,
        offsets: Mapping[Access, Polynomial],
        extents: Mapping[Access, _Extent],
        common: Sequence[Access],
        stride: int | None,
    ) -> CommonRow | None:
        """The row to which some accesses lead; one piece of memory where there is no `stride`."""
        facts, loop = self.facts, self.loop
        own = [a for a in offsets if a not in common]
        numbers = self.added_to(common) if common and own else None
        if numbers is None:
            return None
        each = self.layout.store_size(numbers)
        low = _least(facts, [extents[a][0] for a in common])
        least = _least(facts, [-extents[a][1] for a in common])
        if low is None or least is None or not (is_known_before(low, loop) and is_known_before(least, loop)):
            return None
        if stride is None or stride == each:
            stride = each
            apart = all(_are_apart(facts, extents[a], (low, -least)) for a in own)
        else:
            apart = all(_is_between(facts, a, offsets[a] - low, loop, each, stride) for a in own)
        most = (facts.interval(-least - low).high // stride + 1) * each
        if not apart or not each <= most <= _MOST:
            return None
        places: dict[I.Load | I.Store, Polynomial] = {}
        for access in common:
            assert isinstance(access.instruction, I.Load | I.Store)
            terms = (offsets[access] - low).terms
            if any(by % stride for by in terms.values()) or not all(map(_is_counted, offsets[access].atoms)):
                return None
            places[access.instruction] = Polynomial({m: by // stride * each for m, by in terms.items()})
        return CommonRow(loop, site, numbers, low, -least, stride, most, places)


def _offset(facts: Recurrences, access: Access, site: Value | None) -> Polynomial | None:
    """Where an access is, from the start of the object; None where that may be no number but one modulo 2**64."""
    if site is None:
        return None
    form = facts.form_at(access.pointer, facts.block_of[access.instruction])
    offset = form.polynomial - Polynomial.atom(facts.leaf(site))
    return offset if facts.interval(offset).within(NO_WRAP) else None


def _extent(facts: Recurrences, access: Access, offset: Polynomial, loop: Loop) -> _Extent | None:
    low = high = offset
    around = facts.loops.loop_of[facts.block_of[access.instruction]]
    for each in around.ancestors if around is not None else ():
        first, last = (_at_end(facts, bound, each, up) for bound, up in ((low, False), (high, True)))
        if first is None or last is None:
            return None
        low, high = first, last
        if each is loop:
            break
    if access.size is None or not (facts.is_invariant(low, loop) and facts.is_invariant(high, loop)):
        return None
    return low, high.add_constant(access.size - 1)


def _at_end(facts: Recurrences, offset: Polynomial, loop: Loop, up: bool) -> Polynomial | None:
    """The least that an offset may be in a loop, or (`up`) the most: that of its first iteration, or of its last."""
    still, *factors = offset.coefficients(facts.iteration(loop))
    if not factors:
        return still
    factor = factors[0].value
    if len(factors) > 1 or factor is None:
        return None
    if (factor > 0) is not up:
        return still
    last = full_count(facts, loop).exact
    return None if last is None else still + last.scale(factor)


def _is_counted(atom: Atom) -> bool:
    """Can the number of the iteration be had where it is meant?"""
    return not isinstance(atom, Iteration) or (len(atom.loop.latches) == 1 and atom.loop.preheader is not None)


def _least(facts: Recurrences, numbers: Sequence[Polynomial]) -> Polynomial | None:
    """The one that is certainly no larger than any other."""
    return next((n for n in numbers if all(facts.interval(other - n).low >= 0 for other in numbers)), None)


def _are_apart(facts: Recurrences, one: _Extent, other: _Extent) -> bool:
    return any(facts.interval(x[0] - y[1]).low > 0 for x, y in ((one, other), (other, one)))


def _is_between(facts: Recurrences, access: Access, offset: Polynomial, loop: Loop, each: int, stride: int) -> bool:
    """Does an access certainly lie between two numbers, of which there is one each `stride` bytes, in all iterations?
    `offset`: how far it is from the first of them."""
    half = stride // 2
    rest = Polynomial({m: by for m, c in offset.terms.items() if (by := (c + half) % stride - half)})
    extent = _extent(facts, access, rest, loop)
    return extent is not None and facts.interval(extent[0]).low >= each and facts.interval(extent[1]).high < stride
