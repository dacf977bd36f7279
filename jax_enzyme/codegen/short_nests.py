"""Which nests of short loops are to be unrolled, so that the longer loop around them can be made vectors.

    for (i = 0; i < n; i++) {                                  for each i the same 45 products, by numbers of L that are
        for (r = 0; r < 10; r++) {                             the same for all i: eight points in one vector, and what
            double t = x[10 * i + r];                          is kept of a point are values, neither memory nor tape;
            for (k = 0; k < r; k++) t -= L[r][k] * z[k];       the adjoint of L[r][k] is a sum in a register
            z[r] = t / L[r][r];
        }
        s += z[0] * z[9];
    }

A loop with loops inside is never made vectors by LLVM. It gains where iterations of the longer loop do not wait for one
another, but for sums, and where most of what they read is the same for all or stays in registers: numbers that lie
apart have to be gathered, one by one. What lies side by side for one iteration and the next is left to `row_sums`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import prod

from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Leaf, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.long_loops import takes_long
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name, is_fused, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis

LONG = 16
"""A loop of so many iterations, or of nobody knows how many, is longer."""
_INSTRUCTIONS = 2400
"""Of all iterations of the nests together."""
_VALUES_ONLY = 900
"""The same where no memory becomes values: iterations in lockstep need nothing unrolled then."""
_MANY = 8
"""So many other operations does one that takes long count for."""
_GATHERED = 1.5
"""So many operations are worth one number that is gathered."""


def nests_to_unroll(facts: Recurrences, layout: DataLayout, around: Loop, short: set[Loop]) -> list[Loop]:
    """The loops inside of a loop that are not `short` anyway, where unrolling them all gains."""
    if not around.children or around.exiting != around.latches or around.preheader is None:
        return []
    if around.length > _INSTRUCTIONS:
        return []
    loops = list(inside(around))
    if short.issuperset(loops) or not is_longer(facts, around):
        return []
    counts = {loop: iterations(facts, loop) for loop in loops}
    if any(count is None for count in counts.values()):
        return []
    nest = _Nest(facts, layout, around, {loop: count for loop, count in counts.items() if count is not None}, short)
    return [loop for loop in loops if loop not in short] if nest.gains() else []


def inside(around: Loop) -> Iterator[Loop]:
    """The loops in a loop."""
    for loop in around.children:
        yield loop
        yield from inside(loop)


def is_longer(facts: Recurrences, loop: Loop) -> bool:
    again = facts.repeats(loop)
    return again is None or again >= LONG


def iterations(facts: Recurrences, loop: Loop) -> float | None:
    """How many iterations a short loop has, on average; None where it is not short."""
    trips = facts.trip_count(loop)
    if len(loop.latches) > 1 or len(loop.exits) > 1 or trips.exact is None or trips.maximum is None:
        return None
    if trips.maximum >= LONG:
        return None
    return float(trips.maximum + 1) if trips.exact.value is not None else (trips.maximum + 1) / 2


class _Nest:
    """The loops inside of one, with their numbers of iterations."""

    def __init__(
        self, facts: Recurrences, layout: DataLayout, around: Loop, counts: dict[Loop, float], short: Collection[Loop]
    ) -> None:
        self._facts = facts
        self._layout = layout
        self._around = around
        self._counts = counts
        self._short = short
        self._blocks = facts.loops.blocks(around)

    def gains(self) -> bool:
        """Whether they are few instructions altogether, and vectors of the loop around them are worth it."""
        times = {block: prod(self._counts[loop] for loop in self._nest(block)) for block in self._blocks}
        size = sum(len(b.instructions) * n for b, n in times.items())
        inside = [i for b in self._blocks for i in b.instructions]
        if size > _INSTRUCTIONS or (size > _VALUES_ONLY and not any(map(self._moves, inside))):
            return False
        if not all(map(_is_plain, inside)) or not self._carries_sums() or _hands_memory_on(inside):
            return False
        work = sum(_work(i) * times[b] for b in self._blocks for i in b.instructions)
        gathered = self._gathered(inside)
        return gathered is not None and gathered * _GATHERED <= work

    def _moves(self, access: I.Instruction) -> bool:
        """Whether iterations of a loop that is not short anyway may come to different places."""
        if not isinstance(access, I.Load | I.Store):
            return False
        block = self._facts.block_of[access]
        loops = [loop for loop in self._nest(block) if loop not in self._short]
        try:
            place = self._facts.form_at(access.operands[-1], block).polynomial
        except TooComplex:
            return True
        return not all(self._facts.is_invariant(place, loop) for loop in loops)

    def _nest(self, block: BasicBlock) -> list[Loop]:
        """The short loops around a block."""
        home = self._facts.loops.loop_of[block]
        return [] if home is None else [loop for loop in home.ancestors if loop in self._counts]

    def _carries_sums(self) -> bool:
        """Whether iterations of the loop around hand on nothing but counters and sums."""
        users = uses(self._facts.function)
        for phi in phis(self._around.header):
            if not isinstance(phi.type, T.FloatType):
                if self._facts.bits(phi.type) is None or self._facts.step(phi, self._around) is None:
                    return False
                continue
            pending: list[Value] = [phi]
            seen: set[Value] = set()
            while pending:
                value = pending.pop()
                seen.add(value)
                for user, _ in users.get(value, ()):
                    if self._facts.block_of.get(user) not in self._around.blocks or user in seen:
                        continue
                    if not _adds(user, value):
                        return False
                    pending.append(user)
        return True

    def _gathered(self, inside: Iterable[I.Instruction]) -> float | None:
        """How many numbers of an iteration lie apart from those of the next; None where some lie side by side in the
        nests, or local memory would not become values."""
        found = 0.0
        for access in inside:
            if not isinstance(access, I.Load | I.Store):
                continue
            nest = self._nest(self._facts.block_of[access])
            step, places = self._places(access, nest)
            if abs(step or 0) == self._layout.store_size(I.accessed_value(access).type):
                if nest:
                    return None
            elif step != 0:
                if isinstance(I.base_of(access.operands[-1]), I.Alloca):
                    return None
                found += places
        return found

    def _places(self, access: I.Load | I.Store, nest: Collection[Loop]) -> tuple[int | None, float]:
        """How far the place of an access is from that in the next iteration of the loop around, None where that
        differs; and at how many places it is in one iteration of that."""
        pointer = access.operands[-1]
        try:
            place = self._facts.form_at(pointer, self._facts.block_of[access]).polynomial
            first, *steps = place.coefficients(self._facts.iteration(self._around))
        except TooComplex:
            return None, prod(self._counts[loop] for loop in nest)
        places = prod(self._counts[loop] for loop in nest if place.contains(self._facts.iteration(loop)))
        leaves = (a.value for a in first.atoms if isinstance(a, Leaf))
        if len(steps) > 1 or any(self._facts.block_of.get(leaf) in self._around.blocks for leaf in leaves):
            return None, places
        return steps[0].value if steps else 0, places


def _hands_memory_on(inside: Iterable[I.Instruction]) -> bool:
    """Whether memory may be read first and written to then: what an iteration leaves there the next may find. A local
    variable of one iteration begins with it."""
    read: set[Value] = set()
    written: set[Value] = set()
    for instruction in inside:
        match instruction:
            case I.Call() if callee_name(instruction).startswith("llvm.lifetime.start"):
                written.add(instruction.operands[0])
            case I.Store():
                written.add(I.base_of(instruction.operands[1]))
            case I.Load() if (base := I.base_of(instruction.operands[0])) not in written:
                read.add(base)
            case _:
                pass
    return not read.isdisjoint(written)


def _is_plain(instruction: I.Instruction) -> bool:
    """Whether LLVM can make vectors of an instruction."""
    if isinstance(instruction, I.Load | I.Store):
        return I.is_plain(instruction)
    return (
        not isinstance(instruction, I.CallBase) or callee_name(instruction).startswith("llvm.") or is_pure(instruction)
    )


def _adds(user: I.Instruction, value: Value) -> bool:
    match user:
        case I.Phi() | I.BinaryOp(opcode="fadd"):
            return True
        case I.BinaryOp(opcode="fsub"):
            return value is user.operands[0]
        case I.Call() if is_fused(user):
            return value not in user.operands[:2]
        case _:
            return False


def _work(instruction: I.Instruction) -> int:
    if takes_long(instruction):
        return _MANY
    is_number = isinstance(instruction.type, T.FloatType)
    return int(is_number and isinstance(instruction, I.BinaryOp | I.CallBase))
