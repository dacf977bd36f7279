"""Rows of numbers that take long and that no outer loop changes are computed once.

    before    for i: for k: y[i + k] *= cos(w * k)                the same cosines for all i

    after     for k: C[k] = cos(w * k)
              for i: for k: y[i + k] *= C[k]

LLVM moves numbers that a loop does not change out of it, but no rows of them: twiddle factors, windows, weights by
distance, in the forward sweep as in the value. A row is computed where the outermost loop begins that does not change
it, into local memory. Nothing is read for it, since the inner loop may never run.

What a row is stored to is stored there too, where the inner loop stores it to the same places whenever it runs (what
iterations share has one place on the tape), nothing around touches that memory besides, and it is known before whether
the inner loop runs at all.
"""

from __future__ import annotations

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.long_loops import (
    PLAIN,
    Length,
    kept_of,
    load_instead,
    local_memory,
    number_of,
    root_of,
    stays,
)
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import redirect_phis

_BYTES = 1 << 17
"""Of local memory for all rows of a function."""


class RowsOnce:
    """Finds the rows of one function, and computes them once, in place."""

    def __init__(self, function: Function, facts: Recurrences, layout: DataLayout) -> None:
        self._function = function
        self._facts = facts
        self._layout = layout
        self._room = _BYTES

    def run(self, loop: Loop, length: Length) -> None:
        """The row of one loop, for the outermost loop around it that does not change it."""
        facts = self._facts
        most = facts.trip_count(loop).maximum
        blocks = facts.loops.blocks(loop)
        always = [b for b in blocks if facts.once_per_iteration(b, loop)]
        for around in reversed(list(loop.ancestors)[1:]):
            ends = () if isinstance(length, int) else length
            outside = [facts.block_of.get(v) not in around.blocks for v in ends]
            if most is None or around.preheader is None or not all(outside) or facts.repeats(around) == 0:
                continue
            inside = [i for b in blocks for i in b.instructions]
            fixed = _fixed(loop, around, always, facts)
            ways = _ways_to(loop, around, facts) if any(kept_of(fixed, inside)) else None
            stores: frozenset[I.Instruction] = frozenset()
            if ways is not None:
                certain = _fixed(loop, around, always, facts, reads=True)
                stores = _stores(around, [i for b in always for i in b.instructions], certain, facts)
                fixed = certain if stores else fixed
            kept = tuple(kept_of(fixed | stores, inside))
            size = sum(self._layout.store_size(i.type) for i in kept) * (most + 1)
            if (kept or stores) and size <= self._room:
                self._room -= size
                known = ways if stores and ways is not None else ()
                _Row(self._function, loop, around, fixed | stores, kept, most + 1, tuple(known)).run(length)
                return


def _ways_to(loop: Loop, around: Loop, facts: Recurrences) -> list[tuple[Value, bool]] | None:
    """The conditions on which an iteration of the loop around comes to a loop, all made before, with what each has to
    be; None where that is not all that decides, or where another row has been put in front of a loop on the way."""
    found: list[tuple[Value, bool]] = []
    block = loop.preheader
    while block is not None and block is not around.header:
        own = facts.loops.loop_of.get(block)
        if own is not None and own.header is block:
            block = own.preheader
            continue
        before = facts.cfg.preds.get(block, ())
        if len(before) != 1:
            return None
        (source,) = before
        if isinstance(source.terminator, I.CondBranch):
            condition, targets = source.terminator.operands[0], source.terminator.targets
            if facts.block_of.get(condition) in around.blocks or targets[0] is targets[1]:
                return None
            found.append((condition, targets[0] is block))
        elif not isinstance(source.terminator, I.Branch):
            return None
        block = source
    return None if block is None else found


def _stores(
    around: Loop, inside: list[I.Instruction], fixed: frozenset[Value], facts: Recurrences
) -> frozenset[I.Instruction]:
    """The stores of a loop of what is fixed and takes long to where it is always stored, if nothing else around it
    comes to that memory."""
    long = set(kept_of(fixed, inside))

    def is_fixed(value: Value) -> bool:
        return value in fixed or facts.block_of.get(value) not in around.blocks

    found = {
        i
        for i in inside
        if isinstance(i, I.Store) and I.is_plain(i) and i.operands[0] in long and is_fixed(i.operands[1])
    }
    written = {root_of(i.operands[1]) for i in found}
    for instruction in (i for b in around.blocks for i in b.instructions if i not in found):
        match instruction:
            case I.Load() | I.Store():
                apart = stays(root_of(instruction.operands[-1]), written)
                if not apart and not (isinstance(instruction, I.Load) and instruction in fixed):
                    return frozenset()
            case I.CallBase() if not is_pure(instruction):
                return frozenset()
            case _ if isinstance(instruction, I.TOUCHES_MEMORY) and not isinstance(instruction, I.CallBase):
                return frozenset()
            case _:
                pass
    return frozenset(found)


def _is_constant(load: I.Load) -> bool:
    """Whether it reads what never changes."""
    root = root_of(load.operands[0])
    return isinstance(root, GlobalVariable) and root.is_constant and I.is_plain(load)


def _fixed(
    loop: Loop, around: Loop, blocks: list[BasicBlock], facts: Recurrences, reads: bool = False
) -> frozenset[Value]:
    """What is computed in every iteration of a loop, without memory, and is the same whenever the loop runs. With
    `reads`, from tables of constants too."""
    found: set[Value] = set()

    def is_fixed(value: Value) -> bool:
        return value in found or facts.block_of.get(value) not in around.blocks

    for instruction in (i for block in blocks for i in block.instructions):
        match instruction:
            case I.Phi() if (ends := loop.ends(instruction)) is not None and instruction in loop.header.instructions:
                fits = step_to(ends[1], instruction) is not None and is_fixed(ends[0])
            case I.BinaryOp(opcode="udiv" | "sdiv" | "urem" | "srem"):
                fits = False
            case I.Call():
                fits = is_pure(instruction) and all(map(is_fixed, instruction.operands))
            case I.Load():
                fits = reads and _is_constant(instruction) and is_fixed(instruction.operands[0])
            case _:
                fits = isinstance(instruction, PLAIN) and all(map(is_fixed, instruction.operands))
        if fits:
            found.add(instruction)
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class _Row:
    """What (`kept`, by `fixed`) a loop computes alike whenever it runs in the loop `around` it; `fixed` has the stores
    that it makes alike as well, where it runs on the conditions `ways`."""

    function: Function
    loop: Loop
    around: Loop
    fixed: frozenset[Value]
    kept: tuple[I.Instruction, ...]
    most: int
    ways: tuple[tuple[Value, bool], ...]

    def run(self, length: Length) -> None:
        """Computes it before the loop around, in place, where the loop has iterations at all."""
        memory = {value: local_memory(self.function, self.most, value.type) for value in self.kept}
        before, body, after = self.around.preheader, BasicBlock(), BasicBlock()
        assert before is not None
        (latch,) = self.loop.latches
        end = before.instructions.pop()
        at = Builder(before)
        number = number_of(at, length)
        fits = at.icmp("ult", at.binary("sub", number, const_int(T.I64, 1)), const_int(T.I64, self.most))
        for condition, wanted in self.ways:
            no = const_int(T.I1, 0)
            fits = at.select(condition, fits, no) if wanted else at.select(condition, no, fits)
        at.cond_br(fits, body, after)
        at = Builder(body)
        place = at.phi(T.I64, [(const_int(T.I64, 0), before)])
        copies: dict[Value, Value] = {}
        for block in [b for b in self.function.blocks if b in self.loop.blocks]:
            for instruction in block.instructions:
                if instruction in self.fixed:
                    copies[instruction] = at.insert(with_operands(instruction, instruction.operands))
        for old, copy in copies.items():
            assert isinstance(copy, I.Instruction)
            if isinstance(old, I.Phi) and isinstance(copy, I.Phi):
                ends = self.loop.ends(old)
                assert ends is not None
                copy.operands, copy.targets = [ends[0], copies[ends[1]]], [before, body]
            else:
                copy.operands[:] = [copies.get(o, o) for o in copy.operands]
        for value, row in memory.items():
            at.store(copies[value], at.gep(value.type, row, [place]))
        at.count_on(place, body, number, after)
        for block in self.loop.blocks:
            block.instructions = [i for i in block.instructions if not (isinstance(i, I.Store) and i in self.fixed)]
        after.instructions.append(end)
        redirect_phis(self.around.header, before, after)
        self.around.preheader = after
        index = self.function.blocks.index(before) + 1
        self.function.blocks[index:index] = [body, after]
        if memory:
            inner = self.loop.front
            counter = load_instead(self.function, self.loop, memory, inner)
            counter.add(Builder.at_end(latch).binary("add", counter, const_int(T.I64, 1), ("nuw", "nsw")), latch)
