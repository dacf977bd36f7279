"""How many iterations loops have, about how much they do, and where a part of one may start."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Iteration, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import full_count, is_known_before
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.effects import SECTION

CALL = 20
"""A call, in instructions."""
_UNKNOWN_TRIPS = 16
_VECTOR = 64
"""A loop that may be vectorised is cut at multiples of this, so that the same iterations are vectors wherever it is
cut, and the result is the same to the last bit."""


class LoopSizes:
    """Of the loops of one function."""

    def __init__(self, facts: Recurrences) -> None:
        self._facts = facts
        self.loops = facts.loops

    def count(self, loop: Loop) -> int | None:
        """How many iterations a loop has that is not left early, where that is a constant."""
        trips = full_count(self._facts, loop).exact
        return None if trips is None or trips.value is None else trips.value + 1

    def step(self, phi: I.Phi, loop: Loop) -> int | None:
        """By how much a phi of a loop's header grows in each iteration, where that is a constant."""
        return self._facts.step(phi, loop)

    def length(self, loop: Loop) -> tuple[int, Polynomial] | None:
        """The most iterations that a loop has which is not left early, and how many there are, where that is no
        constant but can be computed in front of it."""
        trips = full_count(self._facts, loop)
        if trips.exact is None or trips.maximum is None or trips.exact.value is not None:
            return None
        if not self._facts.is_invariant(trips.exact, loop) or not is_known_before(trips.exact, loop):
            return None
        return trips.maximum + 1, trips.exact.add_constant(1)

    def work(self, loop: Loop, of: Container[I.Instruction] | None = None) -> int:
        """About how many instructions a loop executes, of some if they are given."""
        return self.each(loop, of) * self._expected(loop)

    def each(self, loop: Loop, of: Container[I.Instruction] | None = None) -> int:
        """About how many an iteration does."""
        each = sum(CALL if isinstance(i, I.CallBase) else 1 for i in _own(loop) if of is None or i in of)
        return each + sum(self.work(child, of) for child in loop.children)

    def _expected(self, loop: Loop) -> int:
        """About how many iterations a loop has: those of triangles have half of the most. The most that data may say
        is mostly that of a type. All sections together are one iteration's instructions."""
        if any(callee_name(i) == SECTION for i in _own(loop)):
            return 1
        found = self.length(loop)
        if found is None:
            return self.count(loop) or _UNKNOWN_TRIPS
        half = -(-found[0] // 2)
        return half if all(isinstance(a, Iteration) for a in found[1].atoms) else min(half, _UNKNOWN_TRIPS)

    def grain(self, loop: Loop) -> int:
        """What the first iteration of a part of a loop is a multiple of. LLVM makes no vectors of vectors."""
        if any(isinstance(i.type, T.VectorType) for b in loop.blocks for i in b.instructions):
            return 1
        stay = [child for child in loop.children if self._stays(child, loop)]
        inside = max((self.count(child) or _VECTOR for child in stay), default=1)
        return 1 if inside >= _VECTOR // 2 else _VECTOR

    def _stays(self, child: Loop, loop: Loop) -> bool:
        """Whether a loop is inside the other one in all that LLVM makes of it: where a condition that is none of an
        iteration may lead past it, there is a loop without it as well."""
        if all(self.loops.dominators.dominates(child.header, latch) for latch in loop.latches):
            return True
        inside: set[Value] = {i for block in loop.blocks for i in block.instructions}

        def joined(part: Value) -> Sequence[Value]:
            if part not in inside or part.type != T.I1 or not isinstance(part, I.BinaryOp | I.Select | I.Freeze):
                return ()
            return part.operands

        asked = [block.terminator.operands[0] for block in loop.own_blocks if len(block.successors) > 1]
        return all(part in inside or int_value(part) is not None for part in reached(asked, joined))


def _own(loop: Loop) -> Iterator[I.Instruction]:
    """The instructions of a loop outside of loops in it."""
    return (i for b in loop.own_blocks for i in b.instructions)
