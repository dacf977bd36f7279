"""Addresses in one array that remainders keep apart: the levels of a time loop that take turns.

    now = u + (t % 3) * size;  next = u + ((t + 1) % 3) * size;  next[p] = f(now[p - 1], now[p + 1])

Two remainders by one divisor, of numbers whose difference is constant, differ by that constant modulo the divisor, and
by less than the divisor: here by 1 or by -2, never by nothing. So do the addresses, in rows that are long enough. Where
there are two levels, optimisers make selects of them, whose arms go by the same remainders.

Members of records are apart by what is left of the distance when whole records are taken away, and places on two sides
of a loop's way by the distance at its nearer end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value, int_value

_NO_WRAP = 1 << 62
_MOST = 64
"""Levels that are told apart."""


@dataclass(frozen=True)
class Place:
    """An access: of so many bytes, in a block."""

    pointer: Value
    block: BasicBlock
    size: int


def never_meet(facts: Recurrences, loop: Loop, a: Place, b: Place) -> bool:
    """Whether two accesses in a loop touch different memory, whatever iterations of it, and of loops in it, they are
    made in, while the loops around it are in one iteration."""
    try:
        p, q = (facts.form_at(x.pointer, x.block).polynomial for x in (a, b))
        (p_inside, p_around), (q_inside, q_around) = _split(p, loop), _split(q, loop)
        if not facts.is_invariant(p_around, loop) or not facts.is_invariant(q_around, loop):
            return False
        if (not p_inside.terms or not q_inside.terms) and _is_passed(facts, loop, p - q, (a.size, b.size)):
            return True
        distances = _values(facts, p_around - q_around)
        inside = facts.interval(p_inside), facts.interval(q_inside)
    except TooComplex:
        return False
    low, high = inside[0].low - inside[1].high, inside[0].high - inside[1].low
    if distances is None or any(max(abs(d + low), abs(d + high)) >= _NO_WRAP for d in distances):
        return False
    # Members of records: whatever the iterations, the distance is this one and some multiple of a record's size.
    pitch = gcd(*p_inside.terms.values(), *q_inside.terms.values()) or _NO_WRAP
    return all(d + low >= b.size or d + high <= -a.size or b.size <= d % pitch <= pitch - a.size for d in distances)


def _is_passed(facts: Recurrences, loop: Loop, distance: Polynomial, sizes: tuple[int, int]) -> bool:
    """Whether two addresses are apart of which the loop moves one, since it comes no nearer than in its first or last
    iteration: 24 * i and 24 * j, where j goes from 0 to i - 1."""
    last = facts.trip_count(loop).exact
    first, *steps = distance.coefficients(facts.iteration(loop))
    if last is None or len(steps) != 1 or not (step := steps[0].value) or not facts.is_invariant(first, loop):
        return False
    behind = distance.substitute(facts.iteration(loop), last)
    low, high = (facts.interval(end) for end in ((first, behind) if step > 0 else (behind, first)))
    if max(abs(low.low), abs(high.high)) >= _NO_WRAP:
        return False
    return low.low >= sizes[1] or high.high <= -sizes[0]


def _split(polynomial: Polynomial, loop: Loop) -> tuple[Polynomial, Polynomial]:
    """What depends on iterations of a loop and of those in it, and the rest."""
    inside = {
        monomial: c
        for monomial, c in polynomial.terms.items()
        if any(isinstance(atom, Iteration) and loop.encloses(atom.loop) for atom, _ in monomial)
    }
    return Polynomial(inside), polynomial - Polynomial(inside)


def _values(facts: Recurrences, distance: Polynomial) -> Collection[int] | None:
    """All values of the difference of two addresses, where it is constant but for two numbers that go together."""
    constant, factors = distance.constant_term, distance.linear
    if not factors:
        return (constant,) if factors is not None else None
    factor = next(iter(factors.values()))
    leaves = [atom.value for atom in factors if isinstance(atom, Leaf)]
    if len(leaves) != 2 or sum(factors.values()) or len(factors) != 2:
        return None
    differences = _differences(facts, *leaves)
    return None if differences is None else [constant + factor * d for d in differences]


def _differences(facts: Recurrences, a: Value, b: Value) -> Collection[int] | None:
    """All values of the difference of two numbers that take turns."""
    first, second = _turns(facts, a), _turns(facts, b)
    if first is None or second is None or len(first.values) != len(second.values):
        return None
    behind = (first.of - second.of).value
    if behind is None:
        return None
    return {x - second.values[(r - behind) % len(second.values)]: None for r, x in enumerate(first.values)}.keys()


@dataclass(frozen=True)
class _Turns:
    """A number that the remainder of another one decides: `values` has one for each."""

    of: Polynomial
    values: Sequence[int]


def _turns(facts: Recurrences, value: Value) -> _Turns | None:
    """Remainders, and what is chosen by one, or by a comparison with one."""
    if not isinstance(value, I.Instruction) or value not in facts.block_of:
        return None
    by = int_value(value.operands[1]) if len(value.operands) > 1 else None
    match value:
        case I.Select():
            condition = _turns(facts, value.operands[0])
            then, other = (int_value(arm) for arm in value.operands[1:])
            if condition is None or then is None or other is None:
                return None
            return _Turns(condition.of, [then if x else other for x in condition.values])
        case I.Compare(predicate="eq" | "ne") if by is not None and value.operands[0].type != T.I1:
            inner = _turns(facts, value.operands[0])
            equal = value.predicate == "eq"
            return None if inner is None else _Turns(inner.of, [int((x == by) == equal) for x in inner.values])
        case I.BinaryOp(opcode="xor") if by in (1, -1) and (by == 1 or value.type == T.I1):
            inner = _turns(facts, value.operands[0])
            return None if inner is None else _Turns(inner.of, [x ^ 1 for x in inner.values])
        case I.Cast(opcode="trunc") if value.type == T.I1:
            return _Turns(facts.form_at(value.operands[0], facts.block_of[value]).polynomial, range(2))
        case I.BinaryOp() if by is not None and 0 < by <= _MOST:
            return _remainder(facts, value, by)
        case _:
            return None


def _remainder(facts: Recurrences, value: I.BinaryOp, by: int) -> _Turns | None:
    number = value.operands[0]
    form, bits = facts.form_at(number, facts.block_of[value]), facts.bits(number.type) or 0
    match value.opcode:
        case "and" if by & (by + 1) == 0 and by.bit_length() < bits:
            return _Turns(form.polynomial, range(by + 1))
        case "urem" if facts.is_unsigned(form, bits):
            return _Turns(form.polynomial, range(by))
        case "srem" if facts.is_signed(form, bits) and facts.interval(form.polynomial).low >= 0:
            return _Turns(form.polynomial, range(by))
        case _:
            return None
