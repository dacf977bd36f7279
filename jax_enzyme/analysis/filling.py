"""Which places of a buffer an access comes to in all iterations of the loops around it, and whether they are all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Iteration, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import run_through
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value


@dataclass(frozen=True)
class Places:
    """Where one access is made in all iterations: bytes from the buffer's start to the lowest of its places, and for
    each loop around it the bytes from one iteration to the next, with their number. `once`: no two are one place."""

    lowest: int
    steps: tuple[tuple[int, int], ...]
    once: bool


class Filling:
    """Asks about one function."""

    def __init__(self, root: Function, facts: Recurrences) -> None:
        self._root = root
        self._facts = facts

    def places(self, pointer: Value, block: BasicBlock, buffer: Argument) -> Places | None:
        """The places of an access in a block that every run of the function comes to in every iteration of the loops
        around it."""
        repeats = self.nest(block)
        if repeats is None:
            return None
        try:
            polynomial = self._facts.form(pointer).polynomial
        except TooComplex:
            return None
        lowest, moves, based = 0, dict.fromkeys(repeats, 0), False
        for monomial, factor in polynomial.terms.items():
            match monomial:
                case ():
                    lowest = factor
                case ((Iteration(loop=loop), 1),) if loop in moves:
                    moves[loop] = factor
                case ((atom, 1),) if atom == self._facts.leaf(buffer) and factor == 1:
                    based = True
                case _:
                    return None
        lowest += sum(min(0, move * repeats[loop]) for loop, move in moves.items())
        steps = sorted((abs(move), repeats[loop] + 1) for loop, move in moves.items() if move and repeats[loop])
        once = all(move or not repeats[loop] for loop, move in moves.items())
        return Places(lowest, tuple(steps), once) if based else None

    def nest(self, block: BasicBlock) -> dict[Loop, int] | None:
        """How often the loops around a block repeat, each of which runs through, and runs what is inside once per
        iteration."""
        outside, found = run_through(self._facts, block) or (block, None)
        ends = (b for b in self._root.blocks if b.terminator.opcode == "ret" and not _fails(b))
        return found if all(self._facts.dominators.dominates(outside, end) for end in ends) else None


def are_all(places: Sequence[Places], item: int, size: int) -> bool:
    """Whether several accesses, of one nest, come to all items of a buffer, each of them to its own."""
    starts = sorted(p.lowest for p in places)
    gaps = {b - a for a, b in pairwise(starts)}
    if starts[0] != 0 or len(gaps) > 1:
        return False
    reached = item
    for step, count in sorted([*places[0].steps, *((gap, len(starts)) for gap in gaps)]):
        if step != reached:
            return False
        reached = step * count
    return reached == size


def _fails(block: BasicBlock) -> bool:
    """Whether a block returns a status that is not 0: what buffers hold then is nobody's."""
    status = block.terminator.operands
    return bool(status) and int_value(status[0]) not in (None, 0)
