"""Which bytes of a buffer an access writes in all iterations of the loops around it, or in all threads of a launch, and
whether they are all that there are.

    y[i * m + j] = ...;        in loops of n and m: 8 bytes from byte 0 on, m times 8 apart, and these n times 8 m apart
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import run_through
from jax_enzyme.classes import dataclass
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, int_value

_Bytes = tuple[int, int]
"""The first byte, and the one behind the last."""


@dataclass(frozen=True)
class Run:
    """Numbers from `low` on, `gap` apart, so many of them."""

    low: int
    gap: int
    count: int

    @staticmethod
    def of(factor: int, count: int) -> Run:
        """The multiples of a factor by 0, 1, ... in ascending order."""
        return Run(min(0, factor * (count - 1)), abs(factor), count)


@dataclass(frozen=True)
class Written:
    """The bytes that one access writes: those from `first` on, and again at each step of each run."""

    first: int
    size: int
    steps: tuple[tuple[int, int], ...]
    """The gap and the count of each run, the narrowest first."""

    def repeated(self, runs: Iterable[Run]) -> Written:
        """The same at each step of more runs."""
        runs = list(runs)
        steps = sorted([*self.steps, *((run.gap, run.count) for run in runs if run.count > 1)])
        return Written(self.first + sum(run.low for run in runs), self.size, tuple(steps))

    @property
    def end(self) -> int:
        """The byte behind the last one."""
        return self.first + self.size + sum(gap * (count - 1) for gap, count in self.steps)

    @property
    def total(self) -> int:
        """So many bytes, each as often as it is written."""
        return self.size * prod(count for _, count in self.steps)


def are_all(written: Iterable[Written], end: int, start: int = 0) -> bool:
    """Whether accesses write all bytes of a buffer from `start` up to `end`."""
    starts: dict[tuple[tuple[int, int], ...], list[_Bytes]] = {}
    for access in written:
        starts.setdefault(access.steps, []).append((access.first, access.first + access.size))
    parts = [part for steps, own in starts.items() for part in _spread(own, steps)]
    return any(first <= start and behind >= end for first, behind in _joined(parts))


def _spread(starts: Iterable[_Bytes], steps: Iterable[tuple[int, int]]) -> list[_Bytes]:
    """What steps, the narrowest first, make of some bytes; nothing where they leave gaps."""
    parts = _joined(starts)
    for gap, count in steps:
        if any(end - first < gap for first, end in parts):
            return []
        parts = _joined((first, end + gap * (count - 1)) for first, end in parts)
    return parts


def _joined(parts: Iterable[_Bytes]) -> list[_Bytes]:
    found: list[_Bytes] = []
    for first, end in sorted(parts):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((first, end))
    return found


class Filling:
    """Asks about one function."""

    def __init__(self, root: Function, facts: Recurrences) -> None:
        self._root = root
        self._facts = facts

    def written(
        self, pointer: Value, size: int, block: BasicBlock, site: Value, within: Loop | None = None
    ) -> Written | None:
        """What an access writes of a buffer, in a block that every run of the function, or every iteration of a loop,
        comes to in every iteration of the loops around it; the same bytes each time."""
        found = None if self.nest(block, within) is None else self.entered(pointer, size, block, site, within)
        return None if found is None else found[1]

    def entered(
        self, pointer: Value, size: int, block: BasicBlock, site: Value, within: Loop | None
    ) -> tuple[BasicBlock, Written] | None:
        """What an access writes, or reads, of a buffer whenever control comes to a block in front of all loops around
        it but those that it is `within`, and that block."""
        found = self.gone_over(pointer, size, block, within)
        own = Polynomial.atom(self._facts.leaf(site)).terms
        return (found[0], found[2]) if found is not None and found[1].terms == own else None

    def gone_over(
        self, pointer: Value, size: int, block: BasicBlock, within: Loop | None
    ) -> tuple[BasicBlock, Polynomial, Written] | None:
        """The same, of anything: the bytes are counted from an address that no such loop changes."""
        through = run_through(self._facts, block, within)
        place = self._facts.form_at(pointer, block).polynomial
        factors = place.linear
        if through is None or factors is None:
            return None
        numbers = {self._facts.iteration(loop): count + 1 for loop, count in through[1].items()}
        runs = (Run.of(factors.get(number, 0), count) for number, count in numbers.items())
        start = Polynomial({m: c for m, c in place.terms.items() if m and m[0][0] not in numbers})
        if not all(self._facts.is_invariant(start, loop) for loop in through[1]):
            return None
        return through[0], start, Written(place.constant_term, size, ()).repeated(runs)

    def nest(self, block: BasicBlock, within: Loop | None = None) -> dict[Loop, int] | None:
        """How often the loops around a block repeat, each of which runs through, and runs what is inside once per
        iteration."""
        outside, found = run_through(self._facts, block, within) or (block, None)
        if within is not None:
            return found if self._facts.once_per_iteration(outside, within) else None
        ends = (b for b in self._root.blocks if b.terminator.opcode == "ret" and not _fails(b))
        return found if all(self._facts.dominators.dominates(outside, end) for end in ends) else None


def _fails(block: BasicBlock) -> bool:
    """Whether a block returns a status that is not 0: what buffers hold then is nobody's."""
    status = block.terminator.operands
    return bool(status) and int_value(status[0]) not in (None, 0)
