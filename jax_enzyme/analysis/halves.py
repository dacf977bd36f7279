"""Orderings that together ask whether a number is one value, each of them an ordinary question.

    below |= x[i] < 0;    above |= x[i] > 0;    if (below || above) ...

At the value the first has the answer that it has above it, and the second the one below: no number on either side has
both. What depends on both of them, and on nothing but such answers, may be otherwise at the value alone. Thresholds of
many digits, such as 1e-8, are left out: no number is one by design. Where one integer is made of them, or one is asked
behind the other, they are one comparison for equality (`transform.equalities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import frexp

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.orders import EQUAL, GREATER, LESS, relation_table
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Value


@dataclass(frozen=True, eq=False)
class Halves:
    """Questions about a number and one constant, at which they have the answer of the numbers below it, or above it."""

    number: Value
    as_below: list[I.Instruction] = field(default_factory=list)
    as_above: list[I.Instruction] = field(default_factory=list)


def halves(function: Function, points_to: PointsTo) -> Sequence[Halves]:
    """Those of both kinds that a function asks of one number, or of numbers in one object: each may be the same one."""
    found: dict[tuple[object, float], Halves] = {}
    for question, number, constant, side in _orderings(function):
        held = points_to.of(number.operands[0]) if isinstance(number, I.Load) else number
        both = found.setdefault((held, constant), Halves(number))
        (both.as_below if side == LESS else both.as_above).append(question)
    return [both for both in found.values() if both.as_below and both.as_above]


def _orderings(function: Function) -> Iterator[tuple[I.Instruction, Value, float, int]]:
    for question in function.instructions():
        table = relation_table(question) if isinstance(question, I.Compare) and question.opcode == "fcmp" else None
        constant = None if table is None else float_value(table.y)
        if table is None or constant is None or not _is_short(constant):
            continue
        same = [side for side in (LESS, GREATER) if table.values[side] == table.values[EQUAL]]
        if len(same) == 1:
            yield question, table.x, constant, same[0]


def _is_short(constant: float) -> bool:
    """Whether a number has no more than eleven binary digits."""
    return (frexp(constant)[0] * 2**11).is_integer()
