"""What addresses depend on of one axis of a launch: the numbers of its blocks and of the threads in them.

A launch is known, so that there is a table of what any expression of such numbers is: `i`, `(i + 1) % n`, `n - 1 - i`.
Those that never come by are left out, where conditions of the same axis say who they are (`if (i >= n) return;`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.analysis.filling import Run
from jax_enzyme.analysis.folding import Numbers, evaluated
from jax_enzyme.analysis.polynomials import Leaf
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.registers import REGISTER

_MOST_NUMBERS = 1 << 16
"""Of an axis that is tabulated. In a longer one, the numbers in a block and of the block are terms of their own."""

Terms = tuple[tuple[int, Value], ...]
"""Factors, and what they multiply."""


@dataclass(frozen=True)
class Digit:
    """A term: the least distance between two of its numbers, and the range of all of them."""

    gap: int
    is_axis: bool
    low: int
    high: int
    values: frozenset[Value] = frozenset()
    """What it is made of, of an axis."""
    axis: str = ""
    """The one that is tabulated."""

    @property
    def rank(self) -> tuple[int, bool]:
        return self.gap, self.is_axis


def axes_of(value: Value) -> set[str] | None:
    """The axes of a launch that a number depends on, where it is computed from the thread's numbers alone."""
    axes: set[str] = set()
    found = Reached([value])
    for part in found:
        match part:
            case ConstantInt():
                pass
            case I.Call() if part.callee.name.startswith((f"{REGISTER}tid.", f"{REGISTER}ctaid.")):
                axes.add(part.callee.name[-1])
            case I.BinaryOp() | I.Compare() | I.Select() | I.Cast() | I.Freeze():
                found.add(part.operands)
            case _:
                return None
    return axes


class Axes:
    """What threads have as numbers along each axis, (those of) blocks before those in a block. With `of_block`, of the
    threads of one block, whichever that is."""

    def __init__(self, shape: Shape, recurrences: Recurrences, of_block: bool = False) -> None:
        self._extents = {axis: (1 if of_block else shape.grid[n], shape.block[n]) for n, axis in enumerate("xyz")}
        self._of_block = of_block
        self.needed = {axis for axis, (blocks, threads) in self._extents.items() if blocks * threads > 1}
        self._tables: dict[str, dict[Value, Numbers | None]] = {axis: {} for axis in "xyz"}
        self._guards = recurrences.guards
        self._recurrences = recurrences

    def of(self, value: Value) -> str | None:
        """The one axis that a number depends on, and on nothing else."""
        axes = axes_of(value)
        return axes.pop() if axes and len(axes) == 1 else None

    def digits(self, axis: str, terms: Terms, blocks: Iterable[BasicBlock], tabulated: bool) -> list[Digit] | None:
        """The terms of an axis: one, where it is tabulated. None where different threads may have one number."""
        count = prod(self._extents[axis])
        if count > _MOST_NUMBERS or not tabulated:
            return self._registers(axis, terms)
        total = self._total(axis, terms)
        if total is None:
            return None
        come = np.zeros(count, np.bool_)
        for block in blocks:
            come |= self._come(axis, block)
        found, values = np.sort(total[come]), frozenset(value for _, value in terms)
        if len(found) < 2:
            return [Digit(1 << 62, True, int(n), int(n), values, axis) for n in found]
        gap = int(np.diff(found).min())
        return [Digit(gap, True, int(found[0]), int(found[-1]), values, axis)] if gap else None

    def apart(
        self, axis: str, terms: Terms, parts: Sequence[tuple[int, int, Iterable[BasicBlock]]], exact: bool
    ) -> tuple[int, int] | None:
        """The first and last byte of all that threads with different numbers touch, if they stay apart: each touches
        the parts (first byte, last byte, and the code that it has to come to for that), as far on as terms of a
        tabulated axis take it. With `exact`, no byte is in two parts of one thread either. None otherwise."""
        total = self._total(axis, terms)
        if total is None or len(total) * len(parts) > _MOST_NUMBERS:
            return None
        starts, ends, numbers = [], [], []
        for first, last, blocks in parts:
            come = np.zeros(len(total), np.bool_)
            for block in blocks:
                come |= self._come(axis, block)
            starts.append(total[come] + first)
            ends.append(total[come] + last)
            numbers.append(np.flatnonzero(come))
        start, end, number = np.concatenate(starts), np.concatenate(ends), np.concatenate(numbers)
        order = np.argsort(start, kind="stable")
        start, number, reached = start[order], number[order], np.maximum.accumulate(end[order])
        if not len(start):
            return None
        meets = start[1:] <= reached[:-1]
        if (meets & (exact | (number[1:] != number[:-1]))).any():
            return None
        return int(start[0]), int(reached[-1])

    def runs(self, axis: str, terms: Terms, conditions: Iterable[tuple[Value, bool]]) -> list[Run] | None:
        """What terms of an axis come to for those of its numbers that meet some conditions, all of which come by: the
        sums of a number from each run. None where that is not known, or not evenly spaced, or where there are none."""
        count = prod(self._extents[axis])
        if count > _MOST_NUMBERS:
            return self._long_runs(axis, terms, conditions)
        come, total = np.ones(count, np.bool_), self._total(axis, terms)
        if total is None:
            return None
        for condition, holds in conditions:
            numbers = self._all(axis, condition)
            if numbers is None:
                return None
            come &= ((numbers & 1) != 0) == holds
        found = np.unique(total[come])
        if len(found) < 2:
            return [Run(int(found[0]), 0, 1)] if len(found) else None
        gaps = np.diff(found)
        return [Run(int(found[0]), int(gaps[0]), len(found))] if (gaps == gaps[0]).all() else None

    def _total(self, axis: str, terms: Terms) -> Numbers | None:
        """What terms come to for all numbers of an axis."""
        total = np.zeros(prod(self._extents[axis]), np.int64)
        for factor, value in terms:
            numbers = self._all(axis, value)
            if numbers is None:
                return None
            total = total + factor * numbers
        return total

    def _long_runs(self, axis: str, terms: Terms, conditions: Iterable[tuple[Value, bool]]) -> list[Run] | None:
        """The same of too many numbers for a table: multiples of the number, as far as conditions let it go, or of
        blocks and of threads in them."""
        blocks, threads = self._extents[axis]
        end = last = blocks * threads - 1
        if last >= 1 << 31:
            return None  # more than the usual types hold
        for condition, holds in conditions:
            limit = self._limit(axis, condition, holds)
            if limit is None:
                return None
            last = min(last, limit)
        factors = self._factors(axis, terms)
        if factors is None or last < 0:
            return None
        own, of_block = factors
        if last == end:
            return [Run.of(own, threads), Run.of(of_block, blocks)]
        factor = self._factor(axis, factors)
        return None if factor is None else [Run.of(factor, last + 1)]

    def _factors(self, axis: str, terms: Terms) -> tuple[int, int] | None:
        """What terms multiply the numbers in a block and those of blocks by."""
        factors = {f"{REGISTER}tid.{axis}": 0, f"{REGISTER}ctaid.{axis}": 0}
        for factor, value in terms:
            if not isinstance(value, I.Call) or value.callee.name not in factors:
                return None
            factors[value.callee.name] += factor
        own, of_block = factors.values()
        return own, of_block

    def _factor(self, axis: str, factors: tuple[int, int]) -> int | None:
        """The same of the number of an axis."""
        blocks, threads = self._extents[axis]
        own, of_block = factors
        if threads == 1:
            return of_block
        return own if blocks == 1 or of_block == own * threads else None

    def _limit(self, axis: str, condition: Value, holds: bool) -> int | None:
        """The greatest number that meets a condition, where all smaller ones meet it too: `i < n`, or not `i >= n`."""
        if not isinstance(condition, I.Compare):
            return None
        number, bound = condition.operands
        known, kind = int_value(bound), condition.predicate[1:] if len(condition.predicate) == 3 else ""
        inclusive = {("lt", True): False, ("le", True): True, ("ge", False): False, ("gt", False): True}.get(
            (kind, holds)
        )
        if known is None or known < 0 or inclusive is None:
            return None
        form = self._recurrences.form(number).polynomial
        linear = form.linear
        if linear is None or form.constant_term or not all(isinstance(a, Leaf) for a in linear):
            return None
        factors = self._factors(axis, tuple((f, a.value) for a, f in linear.items() if isinstance(a, Leaf)))
        is_number = factors is not None and self._factor(axis, factors) == 1
        return (known if inclusive else known - 1) if is_number else None

    def _registers(self, axis: str, terms: Terms) -> list[Digit] | None:
        extents: dict[str, int] = dict(zip(("ctaid", "tid"), self._extents[axis], strict=True))
        found: list[Digit] = []
        for factor, value in terms:
            name = value.callee.name if isinstance(value, I.Call) else ""
            extent = extents.pop(name.removeprefix(REGISTER).partition(".")[0], None)
            if extent is None or factor <= 0:
                return None
            found.append(Digit(factor, True, 0, factor * (extent - 1), frozenset({value})))
        return found if all(extent == 1 for extent in extents.values()) else None

    @remembered
    def _come(self, axis: str, block: BasicBlock) -> NDArray[np.bool_]:
        """Which of the numbers may come to a block of code, by the conditions that speak of this axis alone."""
        come = np.ones(prod(self._extents[axis]), np.bool_)
        for condition in self._guards.at(block):
            compare = I.Compare(T.I1, "icmp", [condition.x, condition.y], condition.predicate)
            holds = self._all(axis, compare)
            if holds is not None:
                come &= holds != 0
        return come

    def _all(self, axis: str, value: Value) -> Numbers | None:
        """A value for all numbers of an axis."""
        blocks, threads = self._extents[axis]

        def register(call: I.Call) -> Numbers | None:
            if call.callee.name == f"{REGISTER}tid.{axis}":
                return np.tile(np.arange(threads, dtype=np.int64), blocks)
            is_block = call.callee.name == f"{REGISTER}ctaid.{axis}" and not self._of_block
            return np.repeat(np.arange(blocks), threads) if is_block else None

        found = evaluated(value, self._tables[axis], register)
        return None if found is None else np.broadcast_to(found, blocks * threads)
