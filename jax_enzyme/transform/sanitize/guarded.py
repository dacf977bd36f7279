"""Conditions that hold where an access is, as bounds of what is linear in its address: see `affine`.

    for (i = 0; i < n; i++) if (i > 0) s += x[i - 1];      at the access i is from 1 on: x[0] is the least that is read

A condition narrows what is said where the arithmetic in it is known not to wrap; where that is not known, or what it
compares with would have to be read first, it says nothing, and nothing is demanded for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jax_enzyme.analysis.guards import SWAPPED, Condition
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import Value, int_value

_ZERO, _ONE = const_int(T.I64, 0), const_int(T.I64, 1)
_MOST = 1 << 40


@dataclass(frozen=True)
class Bound:
    """`number + added predicate other` holds. `is_short`: the sum is one of 32 bits; `is_plain`: what is compared has
    to be no less than zero, such that it does not matter whether there is a sign."""

    number: Value
    added: int
    predicate: str
    other: Value
    is_short: bool
    is_plain: bool


def bounds_of(conditions: Iterable[Condition]) -> list[Bound]:
    """What conditions say of numbers, either way round."""
    found: list[Bound] = []
    for condition in conditions:
        for predicate, x, y in (
            (condition.predicate, condition.x, condition.y),
            (SWAPPED[condition.predicate], condition.y, condition.x),
        ):
            if x.type in (T.I32, T.I64) and int_value(x) is None:
                number, added, short, plain = _stripped(x)
                found.append(Bound(number, added, predicate, y, short, plain or predicate[0] == "u"))
    return found


def _stripped(value: Value) -> tuple[Value, int, bool, bool]:
    """A number without the constant that is added to it, with as many bits as it is compared with or with as it has: in
    both, nobody would know where the sum wraps. And what `Bound` says of it."""
    added, short, plain = 0, False, False
    while True:
        match value:
            case I.Cast(opcode="sext" | "zext") if value.operands[0].type == T.I32:
                plain |= value.opcode == "zext"
                value = value.operands[0]
            case I.BinaryOp(opcode="add" | "sub") if (
                (more := int_value(value.operands[1])) is not None
                and abs(more) < _MOST
                and (value.type == T.I64 or short or not added)
            ):
                added += more if value.opcode == "add" else -more
                short |= value.type == T.I32
                value = value.operands[0]
            case _:
                return value, added, short, plain


def narrowed(
    at: Builder, bound: Bound, ends: tuple[Value, Value], wide: Callable[[Value], Value]
) -> tuple[Value, Value]:
    """The least and the greatest number where a bound holds. `wide` gives what it is compared with in 64 bits."""
    least, most = ends
    other, added = wide(bound.other), const_int(T.I64, bound.added)
    sums = [at.binary("add", end, added) for end in ends]
    half, whole = (
        const_int(T.I64, 1 << 31 if bound.is_short else _MOST),
        const_int(T.I64, 1 << 32 if bound.is_short else 2 * _MOST),
    )
    usable: Value = const_int(T.I1, 1)
    for number in (*sums, other):
        usable = at.binary("and", usable, at.icmp("ult", at.binary("add", number, half), whole))
    for number in (*ends, *sums, other) if bound.is_plain else ():
        usable = at.binary("and", usable, at.icmp("sge", number, _ZERO))
    limit = at.binary("sub", other, added)
    above, below = at.binary("add", limit, _ONE), at.binary("sub", limit, _ONE)

    def up_to(low: Value, high: Value) -> tuple[Value, Value]:
        rises = at.binary("and", usable, at.icmp("sgt", low, least))
        falls = at.binary("and", usable, at.icmp("slt", high, most))
        return at.select(rises, low, least), at.select(falls, high, most)

    match bound.predicate:
        case "eq":
            return up_to(limit, limit)
        case "ne":
            first = at.binary("and", usable, at.icmp("eq", limit, least))
            last = at.binary("and", usable, at.icmp("eq", limit, most))
            return at.select(first, above, least), at.select(last, below, most)
        case "sgt" | "ugt":
            return up_to(above, most)
        case "sge" | "uge":
            return up_to(limit, most)
        case "slt" | "ult":
            return up_to(least, below)
        case _:
            return up_to(least, limit)
