"""Where the items of a slot lie whose inner loops differ in length from one iteration of an outer loop to the next.

    for i in 0..n: for j in 0..i        [ 0 | 1 1 | 2 2 2 | ... ]      item (i, j) is number starts[i] + j

One loop of the nest, the *divider*, has a table: for each of its iterations, where its items start. The loops inside
it make a box of its own in each, whose sides are in further tables; those around it repeat the whole. Any item is found
from iteration numbers alone, in any order of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from math import prod

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.ragged import lengths
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.metadata import MDConstant, MDNode
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import ConstantAggregate, ConstantInt, Value, int_value

_FEWEST = 256
"""Smaller arrays stay what they are."""


@dataclass(frozen=True, eq=False)
class Packing:
    """`around` are the numbers of iterations of the loops around the divider, which is loop number `len(around)` and
    has `one` items in all. `sides` are those of the loops inside, but the first of them: each a number, or a table.
    `beside`, if it is not 0, is that of one more loop, in whose iterations items lie side by side."""

    around: tuple[int, ...]
    one: int
    starts: GlobalVariable
    sides: tuple[int | GlobalVariable, ...]
    beside: int = 0

    @property
    def items(self) -> int:
        return prod(self.around) * self.one * (self.beside or 1)

    @property
    def tables(self) -> tuple[GlobalVariable, ...]:
        return (self.starts, *(side for side in self.sides if isinstance(side, GlobalVariable)))

    def index(self, builder: Builder, numbers: Sequence[Value]) -> Value:
        """The number of an item; `numbers` are those of the iterations. Of those side by side optimisers are told how
        large the entries of tables are, to tell iterations apart; other code is slower for that here and there."""
        count = len(self.around)
        divider = numbers[count]

        def at(table: GlobalVariable) -> Value:
            entry = builder.load(T.I64, builder.gep(T.I64, table, [divider]), 8)
            if self.beside:
                entry.metadata.append(("range", _range(table)))
            return entry

        index = at(self.starts)
        before = flat(builder, numbers[:count], [ConstantInt(T.I64, n) for n in self.around])
        if before is not None:
            scaled = builder.binary("mul", before, ConstantInt(T.I64, self.one), ("nuw", "nsw"))
            index = builder.binary("add", scaled, index, ("nuw", "nsw"))
        sides = [ConstantInt(T.I64, side) if isinstance(side, int) else at(side) for side in self.sides]
        within = flat(builder, numbers[count + 1 : count + 2 + len(self.sides)], [ConstantInt(T.I64, 0), *sides])
        assert within is not None
        item = builder.binary("add", index, within, ("nuw", "nsw"))
        if not self.beside:
            return item
        whole = flat(builder, [item, numbers[-1]], [ConstantInt(T.I64, n) for n in (0, self.beside)])
        assert whole is not None
        return whole


def flat(builder: Builder, numbers: Sequence[Value], sides: Sequence[Value]) -> Value | None:
    """The number of an item of a box, the last number running fastest; None for a box without sides."""
    index: Value | None = None
    for number, side in zip(numbers, sides, strict=True):
        if index is not None:
            number = builder.binary("add", builder.binary("mul", index, side, ("nuw", "nsw")), number, ("nuw", "nsw"))
        index = number
    return index


def longest(facts: Recurrences, around: Sequence[tuple[Loop, int]], loop: Loop) -> int | None:
    """The most iterations that a loop has, where numbers known at compile time say how many it has in each iteration of
    a loop around it; None elsewhere, though there may be a number that it never exceeds."""
    rows = [
        lengths(facts, outer, bound, [*around[number + 1 :], (loop, None)])
        for number, (outer, bound) in enumerate(around)
    ]
    return min((max((row[-1] for row in found), default=0) for found in rows if found is not None), default=None)


def packing(facts: Recurrences, loops: Sequence[tuple[Loop, int]]) -> Packing | None:
    """The packing of a nest that takes least room, if that is at most three quarters of what a box takes."""
    bounds = [bound for _, bound in loops]
    box = prod(bounds)
    if box < _FEWEST:
        return None
    best: tuple[int, int, list[tuple[int, ...]]] | None = None
    for number in range(len(loops) - 1):
        rows = lengths(facts, loops[number][0], bounds[number], loops[number + 1 :])
        if rows is None:
            continue
        items = prod(bounds[:number]) * sum(map(prod, rows))
        if best is None or items < best[0]:
            best = (items, number, rows)
    if best is None or 4 * best[0] > 3 * box:
        return None
    _, number, rows = best
    starts = list(accumulate(map(prod, rows), initial=0))
    sides = [_side([row[i] for row in rows]) for i in range(1, len(rows[0]))]
    one = max(starts[-1], 1)  # where no iteration runs, a slot has its place all the same
    return Packing(tuple(bounds[:number]), one, _table(starts[:-1]), tuple(sides))


def _range(table: GlobalVariable) -> MDNode:
    """From the least number in a table to behind the largest: what optimisers may rely on."""
    assert isinstance(table.initializer, ConstantAggregate)
    numbers = [n for n in map(int_value, table.initializer.elements) if n is not None]
    ends = (min(numbers), max(numbers) + 1)
    return MDNode(operands=[MDConstant(ConstantInt(T.I64, n)) for n in ends])


def _side(numbers: Sequence[int]) -> int | GlobalVariable:
    return numbers[0] if len(set(numbers)) == 1 else _table(numbers)


def _table(numbers: Sequence[int]) -> GlobalVariable:
    """A table under the name of what is in it: under one name there is never anything else."""
    type_ = T.ArrayType(len(numbers), T.I64)
    contents = ConstantAggregate(type_, [ConstantInt(T.I64, n) for n in numbers])
    name = "je.packing." + sha256(repr(numbers).encode()).hexdigest()[:16]
    return GlobalVariable(T.PTR, type_, contents, True, ("private", "unnamed_addr"), name=name)
