"""What addresses depend on of one axis of a launch: the numbers of its blocks and of the threads in them.

A launch is known, so that there is a table of what any expression of such numbers is: `i`, `(i + 1) % n`, `n - 1 - i`.
Those that never come by are left out, where conditions of the same axis say who they are (`if (i >= n) return;`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.analysis.folding import Numbers, folded
from jax_enzyme.analysis.recurrences import Recurrences
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
    """What threads have as numbers along each axis, (those of) blocks before those in a block."""

    def __init__(self, shape: Shape, recurrences: Recurrences) -> None:
        self._extents = {axis: (shape.grid[n], shape.block[n]) for n, axis in enumerate("xyz")}
        self.needed = {axis for axis, (blocks, threads) in self._extents.items() if blocks * threads > 1}
        self._guards = recurrences.guards

    def of(self, value: Value) -> str | None:
        """The one axis that a number depends on, and on nothing else."""
        axes = axes_of(value)
        return axes.pop() if axes and len(axes) == 1 else None

    def digits(self, axis: str, terms: Terms, blocks: Iterable[BasicBlock]) -> list[Digit] | None:
        """The terms of an axis: one, where it is tabulated. None where different threads may have one number."""
        count = prod(self._extents[axis])
        if count > _MOST_NUMBERS:
            return self._registers(axis, terms)
        total = np.zeros(count, np.int64)
        for factor, value in terms:
            numbers = self._all(axis, value)
            if numbers is None:
                return None
            total = total + factor * numbers
        come = np.zeros(count, np.bool_)
        for block in blocks:
            come |= self._come(axis, block)
        found = np.sort(total[come])
        if len(found) < 2:
            return [Digit(1 << 62, True, int(n), int(n)) for n in found]
        gap = int(np.diff(found).min())
        return [Digit(gap, True, int(found[0]), int(found[-1]))] if gap else None

    def _registers(self, axis: str, terms: Terms) -> list[Digit] | None:
        extents: dict[str, int] = dict(zip(("ctaid", "tid"), self._extents[axis], strict=True))
        found: list[Digit] = []
        for factor, value in terms:
            name = value.callee.name if isinstance(value, I.Call) else ""
            extent = extents.pop(name.removeprefix(REGISTER).partition(".")[0], None)
            if extent is None or factor <= 0:
                return None
            found.append(Digit(factor, True, 0, factor * (extent - 1)))
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

    @remembered
    def _all(self, axis: str, value: Value) -> Numbers | None:
        """A value for all numbers of an axis."""
        blocks, threads = self._extents[axis]
        known = int_value(value)
        if known is not None:
            return np.full(blocks * threads, known & 1 if value.type == T.I1 else known, np.int64)
        match value:
            case I.Call() if value.callee.name == f"{REGISTER}tid.{axis}":
                return np.tile(np.arange(threads, dtype=np.int64), blocks)
            case I.Call() if value.callee.name == f"{REGISTER}ctaid.{axis}":
                return np.repeat(np.arange(blocks, dtype=np.int64), threads)
            case I.BinaryOp() | I.Compare() | I.Select() | I.Cast() | I.Freeze():
                parts: list[Numbers] = []
                for operand in value.operands:
                    part = self._all(axis, operand)
                    if part is None:
                        return None
                    parts.append(part)
                return folded(value, parts)
            case _:
                return None
