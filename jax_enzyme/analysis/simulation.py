"""Loops that are driven by constants alone, run by hand: doubling strides, bit tricks, countdowns by division."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import Any, Protocol

import numpy as np

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.folding import evaluated, wrapped
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value

MAX_ITERATIONS = 4096
"""Of a loop that goes on for longer nothing is said: its trip count and its phis are as if nobody had looked."""

_MOST_DRIVEN = 128
"""The same where a loop counts, and other numbers go along with it, as a length that is halved."""

_AT_ONCE = (64, MAX_ITERATIONS)
"""So many iterations are looked at together, where phis go on by constants: most loops are left within the first."""


@dataclass(frozen=True)
class Simulation:
    """In which iteration the loop is left at the exit, and the values that the header's phis had up to then."""

    count: int
    ranges: dict[I.Phi, Interval]


class Opaque(Exception):
    """The value rests on something other than constants and the header's phis."""


class LoopFacts(Protocol):
    """What is asked of a function to run a loop of it."""

    @property
    def block_of(self) -> Mapping[Value, BasicBlock]: ...

    def header_operands(
        self, phi: I.Phi, loop: Loop
    ) -> tuple[tuple[Value, BasicBlock], tuple[Value, BasicBlock]] | None: ...


def simulate(
    facts: LoopFacts, loop: Loop, source: BasicBlock, known: Mapping[Value, int] | None = None
) -> Simulation | None:
    """Runs the header's phis until the branch that ends `source` leaves the loop. `known` are numbers of values from
    outside of it."""
    given = dict(known or {})
    stay = source.terminator.targets[0] in loop
    condition = source.terminator.operands[0]
    try:
        phis = _driving_phis(facts, loop, condition, given)
        if not phis:
            return None
        strides = _strides(phis, given)
        if strides is not None:
            # Where there is no number in iterations after the last one, each is looked at alone.
            with suppress(Opaque, OverflowError):
                return _together(strides, condition, stay, given)
        seen: dict[I.Phi, Interval] = {}
        for count, table in zip(range(MAX_ITERATIONS), _iterations(phis, given), strict=False):
            seen = {phi: _with(seen.get(phi), table[phi]) for phi in phis}
            if bool(evaluate(condition, table)) is not stay:
                return Simulation(count, seen)
    except Opaque:
        pass
    return None


def run(facts: LoopFacts, loop: Loop, phi: I.Phi, times: int) -> Interval | None:
    """The values that a phi of the header has in so many iterations and at the end of the last, where constants alone
    say how it goes on."""
    if times > _MOST_DRIVEN:
        return None
    try:
        tables = _iterations(_driving_phis(facts, loop, phi, {}), {})
        return reduce(_with, (table[phi] for table in islice(tables, times + 1)), None)
    except Opaque:
        return None


def _iterations(phis: Mapping[I.Phi, tuple[Value, Value]], given: dict[Value, int]) -> Iterator[dict[Value, int]]:
    """The numbers of what is given and of the header's phis, iteration by iteration."""
    table: dict[Value, int] = {**given, **{phi: evaluate(outer, given) for phi, (outer, _) in phis.items()}}
    while True:
        yield table
        table = {**given, **{phi: evaluate(latch, table) for phi, (_, latch) in phis.items()}}


def _with(seen: Interval | None, number: int) -> Interval:
    one = Interval(number, number)
    return one if seen is None else seen.hull(one)


def _strides(phis: Mapping[I.Phi, tuple[Value, Value]], given: dict[Value, int]) -> dict[I.Phi, tuple[int, int]] | None:
    """What each phi starts with and goes on by; None where one goes on otherwise than by a constant."""
    found: dict[I.Phi, tuple[int, int]] = {}
    for phi, (outer, latch) in phis.items():
        total, value, bits = 0, latch, _width(phi)
        if not 0 < bits <= 64:
            return None
        while value is not phi:
            before = value.operands[0] if isinstance(value, I.BinaryOp) else value
            step = step_to(value, before)
            if step is None:
                return None
            total, value = total + step, before
        found[phi] = (evaluate(outer, given), wrapped(total, bits))
    return found


def _width(phi: I.Phi) -> int:
    return phi.type.bits if isinstance(phi.type, T.IntType) else 0


def _together(
    strides: Mapping[I.Phi, tuple[int, int]], condition: Value, stay: bool, given: Mapping[Value, int]
) -> Simulation | None:
    """As `simulate`, with a column of numbers, one for each iteration, for every phi and all that is made of them."""
    for length in _AT_ONCE:
        steps = np.arange(length)
        columns = {phi: wrapped(start + by * steps, _width(phi)) for phi, (start, by) in strides.items()}
        left = np.flatnonzero((evaluate(condition, {**given, **columns}) != 0) != stay)
        if left.size:
            run = {phi: column[: left[0] + 1] for phi, column in columns.items()}
            return Simulation(int(left[0]), {phi: Interval(int(x.min()), int(x.max())) for phi, x in run.items()})
    return None


def _driving_phis(
    facts: LoopFacts, loop: Loop, condition: Value, given: dict[Value, int]
) -> dict[I.Phi, tuple[Value, Value]]:
    """The header's phis that the condition rests on, with their values on entry and from the latch."""
    phis: dict[I.Phi, tuple[Value, Value]] = {}
    seen = Reached([condition], lambda v: int_value(v) is None)
    for value in seen:
        if isinstance(value, I.Phi) and facts.block_of.get(value) is loop.header:
            ends = facts.header_operands(value, loop)
            if ends is None:
                raise Opaque
            phis[value] = (ends[0][0], ends[1][0])
            seen.add(phis[value])
        elif isinstance(value, I.BinaryOp | I.Cast | I.Compare | I.Select) and facts.block_of.get(value) in loop.blocks:
            seen.add(value.operands)
        elif facts.block_of.get(value) in loop.blocks:
            raise Opaque
        else:
            evaluate(value, given)
    return phis


def evaluate(value: Value, table: dict[Value, Any]) -> Any:
    """An expression of the numbers in a table, or of columns of them. Raises Opaque where it rests on others."""
    found = evaluated(value, table)
    if found is None:
        raise Opaque
    return found
