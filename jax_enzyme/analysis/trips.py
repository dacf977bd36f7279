"""Trip counts: how often a loop's back edge is taken, from the closed forms of what its exits compare.

A *trip count* is the number of times that a back edge is taken from entering the loop to leaving it: the header runs
that number plus one times. The count of one exit is the first iteration in which its condition says "leave"; the loop's
count is the least of those of its exits.

With `D = y - x` affine in the iteration number k, `D = d0 - s*k`:

    continue while x < y    count = max(0, ceil(d0 / s)), for s > 0; a constant, if it is so for all that d0 may be
    continue while x != y   count = d0 / s, if that is a whole number and not negative
    continue while x == y   at most 1, for s != 0

Several exits with one condition are one exit, where every iteration comes to one of them: compilers copy the test at
the end of a loop into both arms of what is before it.

`x < y` needs D as an integer, so both sides must be known not to wrap; or it is shown here, by induction, that the side
that moves does not wrap while the loop continues. `x != y` with s = 1 or -1 is right modulo 2**bits as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import gcd

from jax_enzyme.analysis.counters import repeats
from jax_enzyme.analysis.guards import SWAPPED, Condition, conjuncts
from jax_enzyme.analysis.implications import speaking_of
from jax_enzyme.analysis.integer_facts import UNKNOWN, Form, IntegerFacts, TripCount
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Iteration, Polynomial
from jax_enzyme.analysis.ranges import Interval, full_range, unsigned_range
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock

_GREATER = ("sgt", "sge", "ugt", "uge")


def trip_count(facts: IntegerFacts, loop: Loop) -> TripCount:
    """The trip count of a loop, by its exits."""
    exits = [source for source, target in loop.exit_edges if not facts.ends_program(target)]
    alone = len(exits) == 1
    counts = [exit_count(facts, loop, source, alone) for source in exits if facts.once_per_iteration(source, loop)]
    for condition, copies in _copied(facts, loop, exits) if len(exits) > 1 else ():
        alone = copies == len(exits)
        counts.append(_count(facts, loop, condition, alone))
    maxima = [count.maximum for count in counts if count.maximum is not None]
    exact = counts[0].exact if alone and counts else None
    return TripCount(exact, min(maxima, default=None))


def run_through(
    facts: IntegerFacts, block: BasicBlock, within: Loop | None = None
) -> tuple[BasicBlock, dict[Loop, int]] | None:
    """Where control comes from into the loops around a block (in an iteration of one that it is `within`), and how
    often each of them repeats, innermost first: all run through, and run the block once in each iteration. None where
    that is not so."""
    found: dict[Loop, int] = {}
    loop = facts.loops.loop_of.get(block)
    while loop is not None and loop is not within:
        ends = [source for source, target in loop.exit_edges if not facts.ends_program(target)]
        count = facts.trip_count(loop).exact if len(loop.latches) == len(ends) == 1 else None
        if loop.preheader is None or count is None or count.value is None or not facts.once_per_iteration(block, loop):
            return None
        if ends == loop.latches or facts.loops.dominators.dominates(block, ends[0]):
            found[loop] = count.value
        elif count.value and facts.loops.dominators.dominates(ends[0], block):  # the last iteration ends in front of it
            found[loop] = count.value - 1
        else:
            return None
        block, loop = loop.preheader, loop.parent
    return block, found


def _copied(facts: IntegerFacts, loop: Loop, exits: Sequence[BasicBlock]) -> Iterator[tuple[Condition, int]]:
    """The conditions that every iteration tests at one of several exits, and at how many."""
    tests: list[tuple[tuple[str, Form, Form], list[Condition]]] = []
    for source in exits:
        branch = source.terminator
        if facts.loops.loop_of[source] is not loop or not isinstance(branch, I.CondBranch):
            continue
        conditions, whole = conjuncts(branch.operands[0], branch.targets[0] in loop, source)
        if whole and len(conditions) == 1:
            (test,) = conditions
            key = (test.predicate, facts.form_at(test.x, source), facts.form_at(test.y, source))
            copies = next((copies for known, copies in tests if known == key), None)
            if copies is None:
                tests.append((key, copies := []))
            copies.append(test)
    for _, copies in tests:
        if len(copies) > 1 and not _around(loop, {test.block for test in copies}):
            yield copies[0], len(copies)


def _around(loop: Loop, blocks: Collection[BasicBlock]) -> bool:
    """Whether an iteration may come to its end and to none of some blocks."""
    others = reached([loop.header], lambda block: block.successors, lambda b: b in loop and b not in blocks)
    return any(loop.header in block.successors for block in others)


def full_count(facts: IntegerFacts, loop: Loop) -> TripCount:
    """How often a loop goes on that is left at its one latch, where it is not left before."""
    latch = loop.latches[0]
    if len(loop.latches) > 1 or latch not in loop.exiting or not facts.once_per_iteration(latch, loop):
        return UNKNOWN
    return exit_count(facts, loop, latch, len(loop.exit_edges) == 1)


def is_known_before(number: Polynomial, loop: Loop) -> bool:
    """Can a number that does not change in a loop be computed before it?"""
    around = [a.loop for a in number.atoms if isinstance(a, Iteration)]
    return all(len(o.latches) == 1 and o.preheader is not None and o.encloses(loop) for o in around)


def exit_count(facts: IntegerFacts, loop: Loop, source: BasicBlock, alone: bool) -> TripCount:
    """The first iteration in which a block that every iteration runs leaves the loop; `alone` if no other block may."""
    branch = source.terminator
    if not isinstance(branch, I.CondBranch):
        return UNKNOWN
    known = repeats(loop, source)
    if known is not None:
        return TripCount(Polynomial.constant(known), known)
    stay = branch.targets[0] in loop
    conditions, whole = conjuncts(branch.operands[0], stay, source)
    counts = [_count(facts, loop, condition, alone and whole and len(conditions) == 1) for condition in conditions]
    maxima = [count.maximum for count in counts if count.maximum is not None]
    exact = counts[0].exact if whole and len(counts) == 1 else None
    if exact is None:
        simulated = facts.simulation(loop, source)
        if simulated is not None:
            return TripCount(Polynomial.constant(simulated.count), simulated.count)
    return TripCount(exact, min(maxima, default=None))


def _count(facts: IntegerFacts, loop: Loop, condition: Condition, alone: bool) -> TripCount:
    """The first iteration in which the condition fails; `alone` if nothing else ends the loop."""
    predicate, x, y = condition.predicate, condition.x, condition.y
    if predicate in _GREATER:
        predicate, x, y = SWAPPED[predicate], y, x
    bits = facts.bits(x.type)
    if bits is None or (isinstance(x.type, T.PointerType) and predicate[0] == "s"):
        return UNKNOWN
    left, right = facts.form_at(x, condition.block), facts.form_at(y, condition.block)
    count = _Count(facts, loop, bits, alone)
    if predicate == "ne":
        return count.while_different(left, right)
    if predicate == "eq":
        return count.while_equal(left, right)
    return count.while_less(left, right, predicate[0] == "s", predicate in ("sle", "ule"))


@dataclass(frozen=True)
class _Count:
    """The rules of the module's table, for one comparison."""

    facts: IntegerFacts
    loop: Loop
    bits: int
    alone: bool

    @property
    def _k(self) -> Iteration:
        return self.facts.iteration(self.loop)

    def _affine(self, left: Form, right: Form) -> tuple[Polynomial, Polynomial] | None:
        """(d0, s) with y - x = d0 - s*k, if both are the same in all iterations."""
        parts = (right.polynomial - left.polynomial).coefficients(self._k)
        if len(parts) > 2 or not all(self.facts.is_invariant(part, self.loop) for part in parts):
            return None
        return parts[0], -parts[1] if len(parts) == 2 else Polynomial.constant(0)

    def _bounds(self, polynomial: Polynomial) -> Interval:
        """Its range on entering the loop."""
        return self.facts.bounds(polynomial, self.facts.guards.at(self.loop.preheader or self.loop.header))

    def while_less(self, left: Form, right: Form, signed: bool, inclusive: bool) -> TripCount:
        affine = self._affine(left, right)
        if affine is None or not self._no_wrap(left, right, signed, inclusive):
            return UNKNOWN
        start, step = affine[0].add_constant(inclusive), affine[1]
        known, slowest = self._bounds(start), self._bounds(step).low
        if known.high <= 0:
            return TripCount(Polynomial.constant(0), 0)
        if slowest < 1:
            return UNKNOWN
        stride = step.value
        rest = start.add_constant(-start.constant_term).divide(stride) if stride is not None else None
        if stride is None or rest is None:
            most = -(-known.high // slowest)
            same = stride is not None and known.low > 0 and -(-known.low // stride) == most
            return TripCount(Polynomial.constant(most) if same else None, most)
        count = rest.add_constant(-(-start.constant_term // stride))
        known = self._bounds(count)
        return TripCount(count if known.low >= 0 else None, max(0, known.high))

    def _no_wrap(self, left: Form, right: Form, signed: bool, inclusive: bool) -> bool:
        """Are both sides equal to their closed forms as integers, in every iteration that is reached?"""
        full = full_range(self.bits) if signed else unsigned_range(self.bits)
        sides = self._is_exact(left, signed, full), self._is_exact(right, signed, full)
        if all(sides):
            return True
        moving, still = (left, right) if sides[1] else (right, left)
        if not any(sides) or not self.facts.is_invariant(still.polynomial, self.loop):
            return False
        parts = moving.polynomial.coefficients(self._k)
        if len(parts) != 2 or not self.facts.is_invariant(parts[0], self.loop):
            return False
        step, limit = parts[1].value, self._bounds(still.polynomial)
        if step is None or not self._bounds(parts[0]).within(full):
            return False
        # While the loop continues, the moving side has not passed the other: one step more must stay in range.
        if moving is left:
            return step > 0 and limit.high - 1 + inclusive + step <= full.high
        return step < 0 and limit.low + 1 - inclusive + step >= full.low

    def _is_exact(self, side: Form, signed: bool, full: Interval) -> bool:
        """Is a side equal to its closed form as an integer? One that does not change: where the loop is entered."""
        known = self.facts.is_signed(side, self.bits) if signed else self.facts.is_unsigned(side, self.bits)
        polynomial = side.polynomial
        return known or (self.facts.is_invariant(polynomial, self.loop) and self._bounds(polynomial).within(full))

    def while_different(self, left: Form, right: Form) -> TripCount:
        affine = self._affine(left, right)
        if affine is None:
            return UNKNOWN
        start, step = affine[0], affine[1].value
        if step is None or step == 0:
            return UNKNOWN
        if start.value is not None:
            return self._first_zero(start.value, step)
        exact = self._same_reading(left, right)
        count = start.divide(step)
        if count is None:
            if not (exact and self.alone):
                return UNKNOWN
            # The loop is left here or not at all, so d0/s is a whole number.
            ends = self._bounds(start)
            return TripCount(None, max(0, ends.high // step if step > 0 else ends.low // step))
        known = self._bounds(count)
        proved = known.low >= 0 and (exact or (abs(step) == 1 and known.high < 1 << self.bits))
        if proved or (exact and self.alone):
            return TripCount(count, max(0, known.high))
        return self._as_compared(count) if abs(step) == 1 else UNKNOWN

    def _as_compared(self, count: Polynomial) -> TripCount:
        """A number that is right modulo 2**bits, in terms of what a condition in front of the loop compares: of
        `n - 1 - m` where `m <= n - 1` is asked, and `n - 1` may wrap, `n - 1` as it is less m."""
        facts = self.facts
        for condition in speaking_of(facts, facts.guards.at(self.loop.preheader or self.loop.header), count.atoms):
            if facts.bits(condition.x.type) != self.bits:
                continue
            x, y = condition.x, condition.y
            for one, other in ((x, y), (y, x)):
                wrapped, exact = (
                    read(one, condition.block).polynomial - read(other, condition.block).polynomial
                    for read in (facts.form_at, facts.exact_at)
                )
                rest = (count - wrapped).modulo(self.bits).value
                if rest is None or not facts.is_invariant(exact, self.loop):
                    continue
                known = self._bounds(found := exact.add_constant(rest))
                if known.low >= 0 and known.high < 1 << self.bits:
                    return TripCount(found, known.high)
        return UNKNOWN

    def _first_zero(self, start: int, step: int) -> TripCount:
        """The least k >= 0 with start = step*k modulo 2**bits."""
        modulus = 1 << self.bits
        common = gcd(step, modulus)
        if start % common:
            return UNKNOWN
        modulus //= common
        count = (start // common) * pow(step // common, -1, modulus) % modulus
        return TripCount(Polynomial.constant(count), count)

    def _same_reading(self, left: Form, right: Form) -> bool:
        facts, bits = self.facts, self.bits
        if facts.is_signed(left, bits) and facts.is_signed(right, bits):
            return True
        return facts.is_unsigned(left, bits) and facts.is_unsigned(right, bits)

    def while_equal(self, left: Form, right: Form) -> TripCount:
        affine = self._affine(left, right)
        step = affine[1].value if affine is not None else None
        if affine is None or step is None or step % (1 << self.bits) == 0:
            return UNKNOWN
        start = affine[0].value
        if start is None:
            return TripCount(None, 1)
        count = int(start % (1 << self.bits) == 0)
        return TripCount(Polynomial.constant(count), count)
