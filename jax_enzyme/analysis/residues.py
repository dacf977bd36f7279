"""Addresses in one array that remainders keep apart: the levels of a time loop that take turns.

    now = u + (t % 3) * size;  next = u + ((t + 1) % 3) * size;  next[p] = f(now[p - 1], now[p + 1])

Two remainders by one divisor, of numbers whose difference is constant, differ by that constant modulo the divisor, and
by less than the divisor: here by 1 or by -2, never by nothing. So do the addresses, in rows that are long enough. Where
there are two levels, optimisers make selects of them, whose arms go by the same remainders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jax_enzyme.analysis.polynomials import Leaf, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value, int_value

_MOST = 64
"""Levels that are told apart."""


def by_turns(facts: Recurrences, distance: Polynomial) -> Sequence[Polynomial]:
    """A distance for each value of the difference of two numbers in it that take turns; itself where it has no two."""
    linear = ((m[0][0], c) for m, c in distance.terms.items() if len(m) == 1 and m[0][1] == 1)
    factors = {a: c for a, c in linear if isinstance(a, Leaf) and isinstance(a.value, I.Instruction)}
    if len(factors) != 2 or sum(factors.values()):
        return (distance,)
    (a, factor), (b, _) = factors.items()
    differences = _differences(facts, a.value, b.value)
    if differences is None:
        return (distance,)
    rest = distance - (Polynomial.atom(a) - Polynomial.atom(b)).scale(factor)
    return [rest.add_constant(factor * d) for d in differences]


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
