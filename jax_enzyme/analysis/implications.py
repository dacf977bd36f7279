"""What branch conditions imply about polynomials: equations and inequalities over the integers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from jax_enzyme.analysis.guards import Condition
from jax_enzyme.analysis.integer_facts import Form, IntegerFacts
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import Reached, made_of
from jax_enzyme.ir.values import Value


@dataclass(frozen=True)
class Implied:
    """Polynomials that are zero, and ones that are zero or greater."""

    zero: tuple[Polynomial, ...] = ()
    natural: tuple[Polynomial, ...] = ()


NOTHING = Implied()
_HOLDS = {"llvm.smin": "sle", "llvm.umin": "ule", "llvm.smax": "sge", "llvm.umax": "uge"}
"""Of the number that is chosen, beside either of the two."""
_LOOKED_THROUGH = 60
"""Of a condition that is computed from more values it is not asked what it mentions: it may be about anything."""


def implied(facts: IntegerFacts, conditions: Iterable[Condition]) -> Implied:
    """All that the conditions say that can be stated over the integers."""
    found = [facts.memoised(("implied", c), lambda c=c: _of_condition(facts, c), NOTHING) for c in conditions]
    return Implied(tuple(p for f in found for p in f.zero), tuple(p for f in found for p in f.natural))


def _of_condition(facts: IntegerFacts, condition: Condition) -> Implied:
    bits = facts.bits(condition.x.type)
    predicate = condition.predicate
    if bits is None or (isinstance(condition.x.type, T.PointerType) and predicate[0] == "s"):
        return NOTHING
    try:
        x, y = (facts.exact_at(side, condition.block) for side in (condition.x, condition.y))
        if not _comparable(facts, x, y, bits, predicate):
            return NOTHING
        difference = x.polynomial - y.polynomial
        match predicate[-2:]:
            case "eq":
                return Implied((difference,), (difference, -difference))
            case "ne":
                return _nonzero(facts.interval(difference), difference)
            case "lt":
                return Implied((), ((-difference).add_constant(-1),))
            case "le":
                return Implied((), (-difference,))
            case "gt":
                return Implied((), (difference.add_constant(-1),))
            case _:
                return Implied((), (difference,))
    except TooComplex:
        return NOTHING


def _comparable(facts: IntegerFacts, x: Form, y: Form, bits: int, predicate: str) -> bool:
    """Does comparing the values tell about the polynomials?"""
    signed = facts.is_signed(x, bits) and facts.is_signed(y, bits)
    if predicate[0] == "s":
        return signed
    if predicate in ("eq", "ne") and signed:
        return True
    return facts.is_unsigned(x, bits) and facts.is_unsigned(y, bits)


def _nonzero(known: Interval, difference: Polynomial) -> Implied:
    if known.low >= 0:
        return Implied((), (difference.add_constant(-1),))
    if known.high <= 0:
        return Implied((), ((-difference).add_constant(-1),))
    return NOTHING


def bounds(facts: IntegerFacts, polynomial: Polynomial, conditions: Iterable[Condition]) -> Interval:
    """An interval for the polynomial: from the ranges of its atoms, narrowed by inequalities in one atom, and from
    inequalities that differ from it by a constant."""
    known = facts.interval(polynomial)
    mine = set(polynomial.atoms)
    if not mine:
        return known
    narrowed: dict[Atom, Interval] = {}
    for natural in implied(facts, [*speaking_of(facts, conditions, mine), *_chosen(facts, mine)]).natural:
        theirs = natural.atoms
        if len(theirs) == 1 and theirs[0] in mine:
            _narrow(facts, natural, theirs[0], narrowed)
        if not mine.isdisjoint(theirs):
            known = known.meet(_compare(polynomial, natural, known))
    if narrowed:
        known = known.meet(polynomial.interval(lambda atom: narrowed.get(atom) or facts.atom_range(atom)))
    return known


def _chosen(facts: IntegerFacts, atoms: Iterable[Atom]) -> Iterator[Condition]:
    """What holds of the lesser or greater of two numbers, as it does of `min(begin + 16, n)`, where a block ends."""
    for value in (atom.value for atom in atoms if isinstance(atom, Leaf)):
        home = facts.block_of.get(value)
        if home is None or not isinstance(value, I.Call):
            continue
        if (predicate := _HOLDS.get((callee_name(value) or "").rpartition(".")[0])) is not None:
            yield from (Condition(predicate, value, one, home) for one in value.arguments)


def vanishes(facts: IntegerFacts, polynomial: Polynomial, conditions: Iterable[Condition]) -> bool:
    """Is it zero wherever the conditions hold? Tries each equation that they imply, solved for one atom."""
    found = implied(facts, speaking_of(facts, conditions, polynomial.atoms))
    if any(_is_solved(polynomial, equation) for equation in found.zero):
        return True
    # What is zero or greater is zero where it cannot be greater: the last iteration, left by an inequality.
    return any(_is_solved(polynomial, p) and facts.interval(p).high == 0 for p in found.natural)


def _is_solved(polynomial: Polynomial, equation: Polynomial) -> bool:
    """Is it zero where the equation is, solved for one of its atoms?"""
    for monomial, c in equation.terms.items():
        if len(monomial) != 1 or monomial[0][1] != 1 or abs(c) != 1:
            continue
        atom = monomial[0][0]
        rest = equation - Polynomial({monomial: c})
        if polynomial.contains(atom) and not rest.contains(atom):
            try:
                if not polynomial.substitute(atom, rest.scale(-c)).terms:
                    return True
            except TooComplex:
                continue
    return False


def speaking_of(facts: IntegerFacts, conditions: Iterable[Condition], atoms: Collection[Atom]) -> list[Condition]:
    """The conditions that can speak of some atoms: facts about all that come before would rest on one another."""
    return [c for c in conditions if _mentions(facts, c, atoms)]


def _mentions(facts: IntegerFacts, condition: Condition, atoms: Collection[Atom]) -> bool:
    """May the polynomials of a condition hold one of these atoms?"""
    if condition not in facts.sources:
        facts.sources[condition] = _sources(facts, condition)
    reached = facts.sources[condition]
    return reached is None or any((a.loop.header if isinstance(a, Iteration) else a.value) in reached for a in atoms)


def _sources(facts: IntegerFacts, condition: Condition) -> frozenset[Value] | None:
    """What both sides of a condition are computed from, and the blocks of the phis among that; None if it is much."""
    seen = Reached([condition.x, condition.y])
    headers: set[Value] = set()
    for value in seen:
        if len(seen) > _LOOKED_THROUGH:
            return None
        home = facts.block_of.get(value)
        if home is not None:
            seen.add(made_of(value))
            if isinstance(value, I.Phi):
                headers.add(home)
    return frozenset(headers.union(seen.all))


def _narrow(facts: IntegerFacts, natural: Polynomial, atom: Atom, narrowed: dict[Atom, Interval]) -> None:
    """c + m*atom >= 0 bounds the atom from one side."""
    parts = natural.coefficients(atom)
    factor, constant = parts[1].value, parts[0].value
    if len(parts) != 2 or factor is None or constant is None:
        return
    old = narrowed.get(atom) or facts.atom_range(atom)
    limit = -(constant // factor) if factor > 0 else constant // -factor
    low, high = (max(old.low, limit), old.high) if factor > 0 else (old.low, min(old.high, limit))
    if low <= high:
        narrowed[atom] = Interval(low, high)


def _compare(polynomial: Polynomial, natural: Polynomial, known: Interval) -> Interval:
    """From `natural >= 0` where it is the polynomial plus a constant, or a constant less the polynomial."""
    above = (polynomial - natural).value
    if above is not None and above <= known.high:
        return Interval(max(above, known.low), known.high)
    below = (polynomial + natural).value
    if below is not None and below >= known.low:
        return Interval(known.low, min(below, known.high))
    return known
