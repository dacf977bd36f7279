"""What all iterations of a loop add to, beside places of their own in the same object.

In the reverse of a step of a factorisation,

    for i > k: for j > k: a[i][j] -= a[i][k] * a[k][j]

iteration i reads and changes what belongs to row i, and adds to what belongs to row k. Its own places have the number
of the iteration in their addresses, the common ones do not; they are apart where all of those of one kind certainly lie
before all of the other. The bounds of addresses follow from the loops around the access, the innermost one first: each
counts from 0 to how often it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.digits import NO_WRAP
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Polynomial, TooComplex
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
    """A part of an object, from byte `low` of it to `high`, at most so many: only the `accesses` of a loop lead there,
    which add numbers of a type, and nowhere else. These lie one behind the other from `low` on. Both bounds are known
    before the loop; where nothing is added, there may be no object."""

    loop: Loop
    site: Value
    type: T.Type
    low: Polynomial
    high: Polynomial
    most: int
    accesses: tuple[I.Load | I.Store, ...]


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
        common: dict[Access, _Extent] = {}
        offsets: list[Polynomial] = []
        own: list[_Extent] = []
        for access in found:
            try:
                offset = _offset(facts, access, item.site) if len(access.objects) == 1 else None
                extent = _extent(facts, access, offset, loop) if offset is not None else None
            except TooComplex:
                return None
            if offset is None or extent is None:
                return None
            if offset.contains(facts.iteration(loop)):
                own.append(extent)
            else:
                common[access] = extent
                offsets.append(offset)
        numbers = self.added_to(list(common)) if common and own else None
        if numbers is None or not all(_is_near(a.pointer, item.site) for a in common):
            return None
        low = _least(facts, [low for low, _ in common.values()])
        least = _least(facts, [-high for _, high in common.values()])
        if low is None or least is None or not all(_are_apart(facts, one, (low, -least)) for one in own):
            return None
        most, each = facts.interval(-least - low).high + 1, self.layout.store_size(numbers)
        if not each <= most <= _MOST or not (is_known_before(low, loop) and is_known_before(least, loop)):
            return None
        if any(by % each for offset in offsets for by in (offset - low).terms.values()):
            return None
        accesses = tuple(a.instruction for a in common if isinstance(a.instruction, I.Load | I.Store))
        return CommonRow(loop, item.site, numbers, low, -least, most, accesses)


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


def _is_near(pointer: Value, site: Value) -> bool:
    """Is an address made of that of an object right away?"""
    while pointer is not site and isinstance(pointer, I.GetElementPtr):
        pointer = pointer.operands[0]
    return pointer is site


def _least(facts: Recurrences, numbers: Sequence[Polynomial]) -> Polynomial | None:
    """The one that is certainly no larger than any other."""
    return next((n for n in numbers if all(facts.interval(other - n).low >= 0 for other in numbers)), None)


def _are_apart(facts: Recurrences, one: _Extent, other: _Extent) -> bool:
    return any(facts.interval(x[0] - y[1]).low > 0 for x, y in ((one, other), (other, one)))
