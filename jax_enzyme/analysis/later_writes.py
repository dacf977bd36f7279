"""Accesses that never touch what others touched, whatever comes in between: affine addresses in nested loops.

    for k: for i > k: for j > k: a[i][j] -= a[i][k] * a[k][j]     what is written later lies below row k

A later run of the write is one with the same iteration numbers in the outer d-1 loops that are around both, and a
larger one in the d-th; or with the same ones in all of them. For each d the distance of the two addresses is a
polynomial in iteration numbers: those that both share, those of the load, those of the write, and how much later the
d-th is. It is bounded by replacing one number after the other, innermost loops first, by zero or by the last iteration,
which may depend on the numbers of outer loops (P. Feautrier 1991 asks the same exactly, by integer programming).

Where two runs share no more than the loops around some loop, any two iterations of that one are compared. What a loop
reads before it writes there is asked the other way round: earlier runs of the write, in the same run of that loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import gcd

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import NOTHING
from jax_enzyme.analysis.polynomials import Atom, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.residues import by_turns
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument

_NO_WRAP = 1 << 62
_FRESH = 1 << 60
"""Ranks of atoms that stand for the numbers of the later run: behind those of the function."""

_Range = tuple[Atom, Polynomial]
"""A number from zero to a bound."""


class LaterWrites:
    """Facts about one function."""

    def __init__(self, facts: Recurrences, layout: DataLayout) -> None:
        self._facts = facts
        self._layout = layout
        self._known: dict[tuple[I.Instruction, I.Instruction], bool] = {}

    def miss(self, load: I.Instruction, write: Access) -> bool:
        """Whether no run of a write that comes after a run of a load, or of a store (it may be the write itself),
        touches what that run touched."""
        key = (load, write.instruction)
        if key not in self._known:
            self._known[key] = self._miss(load, write)
        return self._known[key]

    def are_divided(self, one: Access, other: Access, loop: Loop) -> bool:
        """Whether no two iterations of a loop touch the same bytes, one of them by one access in it and the other by
        another one (or the same), while the loops around are in one iteration."""
        *around, _ = common = list(loop.ancestors)[::-1]
        return all(self._is_missed(a, b, common, len(around)) for a, b in ((one, other), (other, one)))

    def never_meet(self, one: Access, other: Access, loop: Loop) -> bool:
        """Whether two accesses in a loop touch different memory, whatever iterations of it, and of loops in it, they
        are made in, while the loops around it are in one iteration."""
        common = list(loop.ancestors)[:0:-1]
        return self._is_missed(one, other, common, len(common))

    def is_read_first(self, read: Access, write: Access, loop: Loop) -> bool:
        """Whether a read in a loop touches nothing that a write in it touched before, since the loop was entered."""
        common = self._common(write.instruction, read.instruction)
        around = sum(1 for _ in loop.ancestors) - 1
        is_above = self._precedes(read.instruction, write.instruction, len(common))
        levels = range(around, len(common) + (0 if is_above else 1))
        return all(self._is_missed(write, read, common, level) for level in levels)

    def _miss(self, load: I.Instruction, write: Access) -> bool:
        accessed = I.accessed(load)
        if accessed is None or not {load, write.instruction} <= self._facts.block_of.keys():
            return False
        read = Access(load, accessed[0], NOTHING, self._layout.store_size(accessed[1]), True, False)
        common = self._common(load, write.instruction)
        levels = range(len(common) + (0 if self._precedes(write.instruction, load, len(common)) else 1))
        return all(self._is_missed(read, write, common, level) for level in levels)

    def _is_missed(self, early: Access, late: Access, common: Sequence[Loop], level: int) -> bool:
        """Whether one access touches nothing of what the other one does, in a later iteration of `common[level]` or in
        the same ones of all these loops, whatever numbers that take turns are then."""
        if early.size is None or late.size is None or early.kills or late.kills:
            return False
        try:
            distance, ranges = self._distance(early, late, common, level)
            distances = () if distance is None else by_turns(self._facts, distance)
        except TooComplex:
            return False
        return bool(distances) and all(_keeps_off(d, ranges, early.size, late.size) for d in distances)

    def _precedes(self, write: I.Instruction, load: I.Instruction, common: int) -> bool:
        """Whether all runs of a write in an iteration of the loops that both are in come before those of the load: the
        write, or the outermost loop around it alone, is passed on every way to the load. (If control could come back to
        it without a new iteration, there would be one more loop around both.)"""
        alone, there = self._nest(write)[common:], self._facts.block_of[load]
        if write is load:
            return True
        if not alone:
            return self._facts.loops.precedes(write, load)
        return alone[0].header is not there and self._facts.dominators.dominates(alone[0].header, there)

    def _common(self, one: I.Instruction, other: I.Instruction) -> list[Loop]:
        """The loops around both, outermost first."""
        nests = self._nest(one), self._nest(other)
        return [a for a, _ in takewhile(lambda pair: pair[0] is pair[1], zip(*nests, strict=False))]

    def _nest(self, instruction: I.Instruction) -> list[Loop]:
        loop = self._facts.loops.loop_of[self._facts.block_of[instruction]]
        return [] if loop is None else list(loop.ancestors)[::-1]

    def _distance(
        self, early: Access, late: Access, common: Sequence[Loop], level: int
    ) -> tuple[Polynomial | None, list[_Range]]:
        """The distance in bytes from one access to the other, and the numbers that it depends on; None where it is not
        known."""
        facts, shared = self._facts, common[:level]
        read, written = (facts.form_at(a.pointer, facts.block_of[a.instruction]).polynomial for a in (early, late))
        if not (self._is_same(read, shared) and self._is_same(written, shared)):
            return None, []
        ranges: list[_Range] = []  # outermost first
        moved: dict[Loop, Polynomial] = {}
        for number, loop in enumerate(self._nest(early.instruction)):
            atom, last = facts.iteration(loop), self._last(loop, shared)
            if last is not None:
                ranges.append((atom, last))
            if level < len(common) and number == level:
                own, more = Polynomial.atom(atom), _fresh(0)
                moved[loop] = own + Polynomial.atom(more).add_constant(1)
                if last is not None:
                    ranges.append((more, (last - own).add_constant(-1)))

        def later(polynomial: Polynomial) -> Polynomial:
            for loop, replacement in moved.items():
                polynomial = polynomial.substitute(facts.iteration(loop), replacement)
            return polynomial

        for number, loop in enumerate(self._nest(late.instruction)[len(shared) + len(moved) :], 1):
            atom, last = _fresh(number), self._last(loop, shared)
            if last is not None:
                ranges.append((atom, later(last)))
            moved[loop] = Polynomial.atom(atom)
        return later(written) - read, ranges

    def _last(self, loop: Loop, shared: Sequence[Loop]) -> Polynomial | None:
        """The number of the last iteration, or a larger one."""
        count = self._facts.trip_count(loop)
        if count.exact is not None and self._is_same(count.exact, shared):
            return count.exact
        return None if count.maximum is None else Polynomial.constant(count.maximum)

    def _is_same(self, polynomial: Polynomial, shared: Sequence[Loop]) -> bool:
        """Whether the values in it are the same ones in both runs."""
        return all(loop in shared for leaf in _leaves(polynomial) for loop in self._around(leaf))

    def _around(self, leaf: Leaf) -> Iterator[Loop]:
        block = self._facts.block_of.get(leaf.value)
        loop = self._facts.loops.loop_of.get(block) if block is not None else None
        return iter(()) if loop is None else loop.ancestors


def _keeps_off(distance: Polynomial, ranges: Sequence[_Range], read: int, written: int) -> bool:
    """Whether a distance is never one at which two accesses meet: by what it is at least and at most, or by what
    remains of it when it is divided by the length of a row (any coefficient may be that, or what divides all of them:
    the size of a record)."""
    factors = [abs(c) for monomial, c in distance.terms.items() if monomial]
    for row in (_NO_WRAP, *sorted({c for c in (*factors, gcd(*factors)) if c > read})):
        rest = Polynomial({m: r for m, c in distance.terms.items() if (r := (c + row // 2) % row - row // 2)})
        low, most = _least(rest, ranges), _least(-rest, ranges)
        if low is None or most is None or max(abs(low), abs(most)) >= _NO_WRAP // 2:
            continue
        whole = (low - read) // row * row  # the last row that starts early enough
        if -most <= whole + row - written:
            return True
    return False


def _leaves(polynomial: Polynomial) -> list[Leaf]:
    return [atom for atom in polynomial.atoms if isinstance(atom, Leaf) and atom.rank < _FRESH]


def _fresh(number: int) -> Leaf:
    return Leaf(Argument(T.I64), _FRESH + number)


def _least(polynomial: Polynomial, ranges: Sequence[_Range]) -> int | None:
    """A number that a polynomial is never below, where each atom is in its range."""
    for atom, last in reversed(ranges):
        first, *slopes = polynomial.coefficients(atom)
        slope = slopes[0].value if len(slopes) == 1 else 0 if not slopes else None
        if slope is None:
            return None
        polynomial = first if slope >= 0 else first + last.scale(slope)
    return polynomial.value
