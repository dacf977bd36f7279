"""Orderings that together ask whether a number is one value, each of them an ordinary question.

    below |= x[i] < 0;    above |= x[i] > 0;    if (below || above) ...
    if (x > z) sum += ...;    if (x < z) sum += ...

At the value the first has the answer that it has above it, and the second the one below: no number on either side has
both. What depends on both of them, and on nothing but such answers, may be otherwise at the value alone. Thresholds of
many digits, such as 1e-8, are left out: no number is one by design. Where one integer is made of them, or one is asked
behind the other, they are one comparison for equality (`transform.equalities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import frexp

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.orders import EQUAL, GREATER, LESS, Relations, relation_table
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import Constant, Value


@dataclass(frozen=True, eq=False)
class Halves:
    """Questions about a number and one constant, or two numbers, at which they have the answer of the numbers below it,
    or above it."""

    numbers: tuple[Value, ...]
    as_below: list[I.Instruction] = field(default_factory=list)
    as_above: list[I.Instruction] = field(default_factory=list)

    def make(self, item: object) -> bool:
        """Whether an integer is made of questions of both kinds, and of nothing else: which of two numbers is the
        larger, as sorting asks."""
        if len(self.numbers) == 1 or not isinstance(item, I.Instruction) or not isinstance(item.type, T.IntType):
            return False
        table = relation_table(item)
        return table is not None and all(any(p in table.places for p in of) for of in (self.as_below, self.as_above))


def halves(function: Function, points_to: PointsTo) -> Sequence[Halves]:
    """Those of both kinds that a function asks of one number, or of numbers in one object: each may be the same one.
    Of two numbers those that are asked of the same two."""
    found: dict[tuple[object, object], Halves] = {}
    for question, number, bound, side in _orderings(function):
        constant = float_value(bound)
        if constant is not None:
            held = points_to.of(number.operands[0]) if isinstance(number, I.Load) else number
            both = found.setdefault((held, constant), Halves((number,)))
        elif (bound, number) in found:
            both, side = found[bound, number], LESS + GREATER - side
        else:
            both = found.setdefault((number, bound), Halves((number, bound)))
        (both.as_below if side == LESS else both.as_above).append(question)
    every = [both for both in found.values() if both.as_below and both.as_above]
    if all(len(both.numbers) == 1 for both in every):
        return every
    relations, known = Relations(function), uses(function)

    def matters(question: I.Instruction) -> bool:
        """Whether the numbers may be the same where the answer is used: behind `x > z` none asks for that."""
        table = relation_table(question)
        used = known.get(question, ())
        return table is not None and any(EQUAL in relations.at(user, index, table) for user, index in used)

    for both in (both for both in every if len(both.numbers) == 2):
        both.as_below[:] = filter(matters, both.as_below)
        both.as_above[:] = filter(matters, both.as_above)
    return [both for both in every if both.as_below and both.as_above]


def _orderings(function: Function) -> Iterator[tuple[I.Instruction, Value, Value, int]]:
    for question in function.instructions():
        table = relation_table(question) if isinstance(question, I.Compare) and question.opcode == "fcmp" else None
        if table is None or not (_is_short(table.y) if isinstance(table.y, Constant) else table.x is not table.y):
            continue
        same = [side for side in (LESS, GREATER) if table.values[side] == table.values[EQUAL]]
        if len(same) == 1:
            yield question, table.x, table.y, same[0]


def _is_short(constant: Value) -> bool:
    """Whether a number has no more than eleven binary digits."""
    number = float_value(constant)
    return number is not None and (frexp(number)[0] * 2**11).is_integer()
