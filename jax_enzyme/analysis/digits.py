"""Addresses as numbers of digits: which bytes of an object the iterations of a loop touch.

Every access has an address of the form

    base + s*k + (what is at least as large as s) + (what is smaller)          k: the iteration

with the same s. If all smaller parts lie within s bytes, what is below the greatest common divisor g of the larger
coefficients lies within g bytes, then the address determines k, as digits determine a number. Conditions that hold
where the access is made (`if (column < n)`) bound the smaller part.

Of loops that were collapsed an address has quotients and remainders of k instead, `a + s*(k % 80) + t*(k / 80)`. One
that determines each of them determines k. Or it has quotients beside k, `a + s*k + t*(k / 80)`, and grows by s or more
in each iteration, if it is the same sum for all accesses: then they count as what does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.implications import implied
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.quotients import Division, division
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value

NO_WRAP = Interval(-(1 << 56), 1 << 56)
"""What one term of an address may be, so that their sum is a number and not one modulo 2**64."""
_MOST_WAYS = 4
"""Beside so many different ones what does not change is looked at: each takes a look at all accesses."""
_ANY = 1 << 20
"""The coefficient of the iteration where no access has one: a condition may say which iteration all of them are of."""
_ELIMINATIONS = 2
"""How many conditions may be used, one after the other, to bound one sum. The bounds found until then hold; with wider
ones iterations may meet, and the loop stays serial."""


@dataclass(frozen=True)
class Place:
    """The bytes of an access, less base and what does not change in the loop (`still`): `own` per iteration, the
    `large` coefficients of what is larger, and what the smaller terms sum up to: alone, with `own*k`, with what is
    larger, and with all else. `written`: they may change."""

    still: Polynomial
    own: int
    large: tuple[int, ...]
    small: Interval
    reach: Interval
    spread: Interval
    whole: Interval
    written: bool


def places_of(
    facts: Recurrences, found: Sequence[Access], site: Value, loop: Loop, unit: Iteration | Leaf | None
) -> list[Place] | None:
    """Where accesses of an object are, by the number of the iteration or another `unit`; None where that depends on
    data. Where what does not change differs between them, or some do not change at all, they are placed beside one that
    shows them apart."""

    def beside(still: Polynomial | None, own: int) -> list[Place] | None:
        places: list[Place] = []
        for access in found:
            place = place_of(facts, access, site, loop, unit, still, own)
            if place is None:
                return None
            places.append(place)
        return places

    places = beside(None, 0)
    stills = {str(place.still): place.still for place in places or ()}
    owns = sorted({place.own for place in places or ()}, key=abs)
    own = owns[1] if len(owns) == 2 and owns[0] == 0 else _ANY if owns == [0] else 0
    differ = len(stills) > 1 or own != 0
    ways = (beside(still, own) for still in (stills.values() if differ and len(stills) <= _MOST_WAYS else ()))
    return next((way for way in ways if way is not None and overlap(way) is None), places)


def place_of(
    facts: Recurrences,
    access: Access,
    site: Value,
    loop: Loop,
    unit: Iteration | Leaf | None,
    beside: Polynomial | None = None,
    beside_own: int = 0,
) -> Place | None:
    """Where an access of an object is, by the number of the iteration or another `unit`; None where that depends on
    data. `beside`: what does not change, less which it is wanted. `beside_own`: the coefficient of the iteration that
    others have, for one that has none, as a condition may say which iteration it is of (`if (k == 0) y[0] = a`)."""
    block, size = facts.block_of[access.instruction], access.size
    if size is None:
        return None
    k = facts.iteration(loop) if unit is None else unit
    try:
        offset = facts.form_at(access.pointer, block).polynomial - Polynomial.atom(facts.leaf(site))
        parts = _parts(facts, offset, loop, k)
        if parts is None:
            return None
        still, own, small, rest = parts
        growing = [term for factor, term in rest if unit is None and _direction(facts, term, loop) * factor * own > 0]
        if all(abs(factor) < abs(own) for factor, term in rest if term not in growing):
            rest = [(factor, term) for factor, term in rest if term not in growing]
            still = sum(growing, still)
        large: list[int] = []
        if beside is not None:
            still, small = beside, small + still - beside
        if own == 0:
            own = beside_own
            small -= Polynomial.atom(k).scale(own)
        for factor, term in rest:
            if abs(factor) >= abs(own):
                if not facts.interval(term).within(NO_WRAP):
                    return None
                large.append(abs(factor))
            else:
                small += term
        conditions = implied(facts, facts.guards.at(block)).natural
        mine = Polynomial.atom(k).scale(own)
        sums = (small, small + mine, offset - still - mine, offset - _fixed(facts, still, loop))
        alone, reach, spread, whole = (
            _bounded(facts, sum_, conditions, _ELIMINATIONS) + Interval(0, size - 1) for sum_ in sums
        )
    except TooComplex:
        return None
    return Place(still, own, tuple(large), alone, reach, spread, whole, access.writes)


def all_digits(facts: Recurrences, found: Iterable[Access], loop: Loop) -> list[Leaf]:
    """The quotients and remainders in addresses of a loop that tell the number of the iteration together; none where
    they do not."""
    digits = dict(_digits(facts, found, loop))
    told = dict.fromkeys(digits.values())
    known = [division for division in told if division.weight]
    while known:
        part = known.pop()
        if not any(
            (d.of, d.divisor) == (part.of, part.divisor) and bool(d.weight) is not bool(part.weight) for d in told
        ):
            continue
        if _step_of(facts, part.of, loop):
            return list(digits)
        # What both parts tell may be a part itself, of something else.
        whole = division(part.of)
        if whole is not None and whole.weight in (0, whole.divisor) and whole not in told:
            told[whole] = None
            known.append(whole)
    return []


def slowest_digit(facts: Recurrences, found: Iterable[Access], loop: Loop) -> tuple[Leaf, int] | None:
    """The quotient of the number of an iteration in addresses that changes most rarely, and in how many iterations."""
    numbers = {digit: d for digit, d in _digits(facts, found, loop) if d.weight and _step_of(facts, d.of, loop)}
    return max(((digit, d.divisor) for digit, d in numbers.items()), key=lambda pair: pair[1], default=None)


def _digits(facts: Recurrences, found: Iterable[Access], loop: Loop) -> Iterable[tuple[Leaf, Division]]:
    """The quotients and remainders in addresses that are computed in a loop."""
    for access in found:
        for atom in facts.form_at(access.pointer, facts.block_of[access.instruction]).polynomial.atoms:
            part = _digit(facts, atom, loop)
            if part is not None and isinstance(atom, Leaf):
                yield atom, part


def _digit(facts: Recurrences, atom: Iteration | Leaf, loop: Loop) -> Division | None:
    """Of what an atom is a quotient or a remainder that is computed in a loop."""
    if not isinstance(atom, Leaf) or facts.block_of.get(atom.value) not in loop.blocks:
        return None
    part = division(atom.value)
    if part is None or part.weight not in (0, part.divisor):
        return None
    of = facts.form_at(part.of, facts.block_of[atom.value]).polynomial
    return part if facts.interval(of).within(part.limits) else None


def _direction(facts: Recurrences, term: Polynomial, loop: Loop) -> int:
    """Is a term, but for its coefficient, a quotient that never falls (1) or never rises (-1) as a loop goes on?"""
    ((((atom, _),), _),) = term.terms.items()
    part = _digit(facts, atom, loop)
    return _step_of(facts, part.of, loop) if part is not None and part.weight else 0


def _step_of(facts: Recurrences, value: Value, loop: Loop) -> int:
    """Is a value the number of an iteration, counted from anywhere, up (1) or down (-1)?"""
    form = facts.form_at(value, facts.block_of.get(value, loop.header))
    first, *steps = form.polynomial.coefficients(facts.iteration(loop))
    step = steps[0].value if len(steps) == 1 else None
    exact = facts.is_invariant(first, loop) and facts.is_signed(form, facts.bits(value.type) or 0)
    return step if exact and step in (1, -1) else 0


def _parts(
    facts: Recurrences, offset: Polynomial, loop: Loop, k: Iteration | Leaf
) -> tuple[Polynomial, int, Polynomial, list[tuple[int, Polynomial]]] | None:
    """What an offset is made of: what does not change in the loop, the coefficient of `k`, a constant, and other terms
    with their coefficients; None where something else is in it."""
    still, own, constant, rest = Polynomial({}), 0, Polynomial({}), list[tuple[int, Polynomial]]()
    for monomial, factor in offset.terms.items():
        term = Polynomial({monomial: factor})
        if monomial and facts.is_invariant(term, loop):
            still += term
        elif not monomial:
            constant += term
        elif len(monomial) != 1 or monomial[0][1] != 1 or not _is_bounded(monomial[0][0]):
            return None
        elif monomial[0][0] == k:
            own = factor
        else:
            rest.append((factor, term))
    return still, own, constant, rest


def _fixed(facts: Recurrences, still: Polynomial, loop: Loop) -> Polynomial:
    """What of it is the same throughout a loop."""
    terms = (Polynomial({monomial: factor}) for monomial, factor in still.terms.items())
    return sum((term for term in terms if facts.is_invariant(term, loop)), Polynomial({}))


def _is_bounded(atom: Iteration | Leaf) -> bool:
    """Whether an atom may stand in a sum of digits: any number but an address."""
    return isinstance(atom, Iteration) or not T.is_pointer(atom.value.type)


def overlap(places: list[Place]) -> str | None:
    """Why iterations may meet; parts of the object that have no byte in common are looked at one by one, and those
    that nothing is written to are not, as the row above of the rows that iterations change."""
    if any(p.still.terms != places[0].still.terms for p in places):
        return "it is touched in different ways"
    written = [p.whole for p in places if p.written]
    if not written:
        return None
    changed = _hull(written)
    near = (p for p in places if p.whole.low <= changed.high and changed.low <= p.whole.high)
    rest = sorted(near, key=lambda p: p.whole.low)
    while rest:
        part, end = [rest[0]], rest[0].whole.high
        for place in rest[1:]:
            if place.whole.low > end:
                break
            part.append(place)
            end = max(end, place.whole.high)
        rest = rest[len(part) :]
        problem = _overlap_within(part)
        if problem is not None:
            return problem
    return None


def _overlap_within(places: list[Place]) -> str | None:
    step = abs(places[0].own)
    if any(p.own != places[0].own for p in places):
        return "it is touched in different ways"
    if step == 0:
        return "iterations touch the same places of it"
    large = gcd(*(f for p in places for f in p.large))
    if large:
        places = _same_digit(places, large)
    if _length(_hull(p.small for p in places)) >= step:
        return "the places that iterations touch overlap"
    if large and _length(_hull(p.reach for p in places)) >= large:
        return "the places that iterations touch may overlap"
    return None


def distance(places: list[Place]) -> int | None:
    """How many iterations lie between two that certainly touch nothing in common; None where that is not known."""
    step = abs(places[0].own)
    if step == 0 or any(p.still.terms != places[0].still.terms or p.own != places[0].own for p in places):
        return None
    found = [_length(_hull(p.spread for p in places))]
    large = gcd(*(f for p in places for f in p.large))
    if large:
        digits = _same_digit(places, large)
        if _length(_hull(p.reach for p in digits)) < large:
            found.append(_length(_hull(p.small for p in digits)))
    return min(found) // step + 1


def _same_digit(places: list[Place], large: int) -> list[Place]:
    """The places, moved by multiples of `large` to where the first one is: what is larger tells them apart."""
    found: list[Place] = []
    for place in places:
        by = (places[0].reach.low - place.reach.low + large // 2) // large * large
        shift = Interval(by, by)
        found.append(replace(place, small=place.small + shift, reach=place.reach + shift))
    return found


def _length(interval: Interval) -> int:
    return interval.high - interval.low


def _hull(intervals: Iterable[Interval]) -> Interval:
    first, *others = intervals
    for other in others:
        first = first.hull(other)
    return first


def _bounded(facts: Recurrences, sum_: Polynomial, conditions: Iterable[Polynomial], depth: int) -> Interval:
    """An interval for a sum where all `conditions` are zero or greater: a condition times a factor is added where that
    removes a term of the sum, which makes it larger, or smaller."""
    known = facts.interval(sum_)
    if depth == 0:
        return known
    conditions = list(conditions)
    for condition in conditions:
        for monomial, c in condition.terms.items():
            mine = sum_.terms.get(monomial, 0)
            if not monomial or mine == 0 or mine % c:
                continue
            other = _bounded(facts, sum_ - condition.scale(mine // c), conditions, depth - 1)
            # sum = other + (mine/c) * condition, and the condition is at least 0.
            if mine // c > 0:
                known = known.meet(Interval(max(known.low, other.low), known.high))
            else:
                known = known.meet(Interval(known.low, min(known.high, other.high)))
    return known
