"""How long inner loops are in each iteration of an outer one, where numbers known at compile time decide it.

    for i in 0..n: for j in 0..i                       i + 1 iterations of j: a closed form
    for len = 2, 4 .. n: for i = 0, len .. n: ...      n / len iterations of i: the loop is run by hand

Either is an upper bound: a loop that is left in other ways as well runs less often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jax_enzyme.analysis.folding import evaluated
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Atom, Iteration
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.simulation import MAX_ITERATIONS, simulate
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value

_MOST_INSTRUCTIONS = 100
"""Of what decides how long inner loops are."""
_MOST_RUN = 8192
"""Iterations of inner loops that are run by hand, in all."""


def lengths(
    facts: Recurrences, outer: Loop, iterations: int, inner: Sequence[tuple[Loop, int | None]]
) -> list[tuple[int, ...]] | None:
    """For each of the first `iterations` of `outer`: how many iterations each loop inside has at most. `inner` is a
    nest, outermost first, each with a number that holds in all iterations; with None it is asked what numbers known at
    compile time make of it in each of them. None where that says nothing more."""
    if iterations > MAX_ITERATIONS:
        return None
    around = _Around(facts, outer)
    known = around.start([leaf for loop, _ in inner for leaf in _deciding(facts, loop)])
    if not known and not any(_depends(facts, loop, outer) for loop, _ in inner):
        return None
    left = _MOST_RUN
    found: list[tuple[int, ...]] = []
    for number in range(iterations):
        row: dict[Loop, int] = {}
        for loop, most in inner:
            bound, run = _length(facts, loop, Interval(number, number), outer, row, known, left, most is None)
            left -= run
            bounds = [n for n in (bound, most) if n is not None]
            if not bounds:
                return None
            row[loop] = max(0, min(bounds))
        found.append(tuple(row.values()))
        known = around.step(known)
    return found


def _depends(facts: Recurrences, loop: Loop, outer: Loop) -> bool:
    """Whether there is a closed form of a length, with the iteration number of `outer` in it."""
    exact = facts.trip_count(loop).exact
    return exact is not None and facts.iteration(outer) in exact.atoms


def _length(
    facts: Recurrences,
    loop: Loop,
    number: Interval,
    outer: Loop,
    row: Mapping[Loop, int],
    known: Mapping[Value, int],
    left: int,
    is_decided: bool,
) -> tuple[int | None, int]:
    """The most iterations of a loop, in one iteration of `outer`, and how many were run to find that. `is_decided`:
    what only the run knows says nothing, whatever its range is."""
    exact = facts.trip_count(loop).exact
    if exact is not None:
        leaves = [atom.value for atom in exact.atoms if not isinstance(atom, Iteration)]
        if is_decided and any(evaluated(value, dict(known)) is None for value in leaves):
            return None, 0

        def range_of(atom: Atom) -> Interval:
            if isinstance(atom, Iteration):
                if atom.loop is outer:
                    return number
                return Interval(0, row[atom.loop] - 1) if row.get(atom.loop, 0) > 0 else facts.atom_range(atom)
            value = evaluated(atom.value, dict(known))
            return facts.atom_range(atom) if value is None else Interval(value, value)

        return exact.interval(range_of).high + 1, 0
    counts: list[int] = []
    run = 0
    for source in _exits(facts, loop) if known else ():
        found = simulate(facts, loop, source, known) if run < left else None
        if found is not None:
            counts.append(found.count + 1)
            run += found.count + 1
    return min(counts, default=None), run


def _exits(facts: Recurrences, loop: Loop) -> Iterator[BasicBlock]:
    for source, target in loop.exit_edges:
        leaves = isinstance(source.terminator, I.CondBranch) and not facts.ends_program(target)
        if leaves and facts.once_per_iteration(source, loop):
            yield source


def _deciding(facts: Recurrences, loop: Loop) -> Iterator[Value]:
    """What the length of a loop may rest on."""
    exact = facts.trip_count(loop).exact
    if exact is not None:
        yield from (atom.value for atom in exact.atoms if not isinstance(atom, Iteration))
        return
    for source in _exits(facts, loop):
        yield source.terminator.operands[0]


class _Around:
    """The phis of a loop's header that inner loops depend on, iteration by iteration."""

    def __init__(self, facts: Recurrences, loop: Loop) -> None:
        self._facts = facts
        self._loop = loop
        self._latch: dict[Value, Value] = {}

    def start(self, values: Sequence[Value]) -> dict[Value, int]:
        """Those that constants alone decide, in the first iteration; none where it takes too much to tell."""
        found = Reached[Value](values, lambda v: self._facts.block_of.get(v) in self._loop.blocks)
        known: dict[Value, int] = {}
        for count, value in enumerate(found):
            if count == _MOST_INSTRUCTIONS:
                return {}
            if isinstance(value, I.Phi) and self._facts.block_of[value] is self._loop.header:
                ends = self._facts.header_operands(value, self._loop)
                if ends is None:
                    continue
                self._latch[value] = ends[1][0]
                found.add([ends[1][0]])
                number = evaluated(ends[0][0], {})
                if number is not None:
                    known[value] = number
            elif isinstance(value, I.BinaryOp | I.Cast | I.Compare | I.Select | I.Freeze | I.Phi):
                found.add(value.operands)
        return known

    def step(self, known: Mapping[Value, int]) -> dict[Value, int]:
        """The next iteration."""
        table = dict(known)
        following = {phi: evaluated(self._latch[phi], table) for phi in known}
        return {phi: number for phi, number in following.items() if number is not None}
