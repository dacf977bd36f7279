"""What is computed on all ways on from a branch, in several places, is computed once before it.

    before    switch %region: 0: %v = (long) ...    1: %v' = the same ...    join: %v'' = the same ...
    after     %v = (long) ...; switch %region: ...

A reverse sweep comes to the arms of a branch before it comes to what was computed ahead of the branch. What an arm
needs of that it computes again, or reads again from the inputs, and so do the other arms and the code behind them: LLVM
keeps one of two such places only where control comes to one from the other. Lanes of a warp that take different arms
take all of them, one after the other.

    places    of one computation: of the same operation with operands that are places of one computation; and where
              control comes together with the same on all ways
    before    the block that dominates all places, where each way on from it leads to one of them (so that nothing is
              computed, and no memory read, that was not before) and where no loop begins or ends in between

Only what takes time moves (arithmetic of floating-point numbers, functions, loads of what nobody writes), and what it
is made of.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.flow import holds_float
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantFloat, ConstantInt, Value
from jax_enzyme.transform.rewriting import substitute

_ARITHMETIC = (I.UnaryOp, I.BinaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)


def compute_before_branches(function: Function, constant: Collection[Value]) -> bool:
    """Does so in place, in a function with one kind of address; whether there was anything. `constant` are the
    parameters that point to memory that nobody writes."""
    return len(function.blocks) > 2 and _Moves(function, constant).run()


class _Moves:
    def __init__(self, function: Function, constant: Collection[Value]) -> None:
        self._function = function
        self._constant = constant
        self._loops = Loops.of(function)
        self._cfg, self._dominators = self._loops.cfg, self._loops.dominators
        self._block_of: dict[Value, BasicBlock] = {i: b for b in self._cfg.rpo for i in b.instructions}
        self._numbers: dict[Value, int] = {}
        self._places: dict[int, list[I.Instruction]] = {}
        self._number_all()
        self._moved: dict[tuple[int, BasicBlock], I.Instruction] = {}
        self._comes: dict[tuple[BasicBlock, frozenset[BasicBlock]], bool] = {}

    def run(self) -> bool:
        replaced: dict[Value, Value] = {}
        for number, places in list(self._places.items()):
            if len(places) < 2 or not _takes_time(places[0]):
                continue
            for of_loop in self._by_loop(places):
                before = self._before(of_loop)
                if before is not None:
                    moved = self._move(number, before)
                    replaced.update(dict.fromkeys(of_loop, moved))
        substitute(self._function, replaced)
        return bool(replaced)

    def _number_all(self) -> None:
        """Gives instructions that compute the same the same number."""
        known: dict[Hashable, int] = {}
        for block in self._cfg.rpo:
            for instruction in block.instructions:
                if isinstance(instruction, I.Phi):
                    number = self._merged(instruction)
                elif self._is_movable(instruction):
                    number = known.setdefault(self._key(instruction), len(known))
                else:
                    continue
                if number is not None:
                    self._numbers[instruction] = number
                    self._places.setdefault(number, []).append(instruction)

    def _merged(self, phi: I.Phi) -> int | None:
        """The number of what comes to a phi, where that is the same on all ways."""
        first, *others = (self._numbers.get(o) for o in phi.operands)
        return first if all(o == first for o in others) else None

    def _is_movable(self, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Load():
                return I.is_plain(instruction) and I.base_of(instruction.operands[0]) in self._constant
            case I.CallBase():
                return is_pure(instruction) and not instruction.bundles
            case _:
                return isinstance(instruction, _ARITHMETIC)

    def _key(self, instruction: I.Instruction) -> Hashable:
        own: tuple[Hashable, ...] = ()
        match instruction:
            case I.Compare():
                own = (instruction.predicate,)
            case I.GetElementPtr():
                own = (str(instruction.source_type),)
            case I.Load():
                own = (instruction.align,)
            case I.CallBase():
                own = (*instruction.attributes, *instruction.parameter_attributes, *instruction.return_attributes)
            case _:
                pass
        flags = tuple(f for f in instruction.flags if f not in ("tail", "notail"))
        operands = tuple(self._operand(o) for o in instruction.operands)
        return instruction.opcode, str(instruction.type), flags, own, operands

    def _operand(self, value: Value) -> Hashable:
        match value:
            case ConstantInt():
                return str(value.type), value.value
            case ConstantFloat():
                return str(value.type), value.text
            case _:
                return self._numbers.get(value, value)

    def _by_loop(self, places: Iterable[I.Instruction]) -> list[list[I.Instruction]]:
        """The places in different blocks of one innermost loop each, where there are several."""
        found: dict[Loop | None, list[I.Instruction]] = {}
        for place in places:
            found.setdefault(self._loops.loop_of[self._block_of[place]], []).append(place)
        return [own for own in found.values() if len({self._block_of[p] for p in own}) > 1]

    def _before(self, places: list[I.Instruction]) -> BasicBlock | None:
        """The block at whose end a computation stands for all its places."""
        blocks = frozenset(self._block_of[p] for p in places)
        first, *others = blocks
        before: BasicBlock | None = first
        for block in others:
            while before is not None and not self._dominators.dominates(before, block):
                before = self._dominators.idom[before]
        if before is None or before in blocks:
            return None  # LLVM sees to the second itself, where it can
        same = self._loops.loop_of[before] is self._loops.loop_of[first]
        return before if same and self._comes_to(before, blocks) else None

    def _comes_to(self, before: BasicBlock, blocks: frozenset[BasicBlock]) -> bool:
        """Whether control comes from the end of one block to one of others, whatever happens."""
        if (before, blocks) not in self._comes:
            succs = self._cfg.succs
            passed = reached(succs[before], lambda b: () if b in blocks else succs[b])
            # An end, or a loop around everything: a way on that goes by all of them.
            self._comes[before, blocks] = all(b in blocks or (succs[b] and b is not before) for b in passed)
        return self._comes[before, blocks]

    def _move(self, number: int, before: BasicBlock) -> I.Instruction:
        """The computation at the end of a block: the one that was put there, or a copy of its first place."""
        known = self._moved.get((number, before))
        if known is not None:
            return known
        place, *others = self._places[number]
        operands = [o if self._is_there(o, before) else self._move(self._numbers[o], before) for o in place.operands]
        moved = with_operands(place, operands)
        others = [p for p in others if not isinstance(p, I.Phi)]
        moved.metadata = [m for m in place.metadata if all(m in other.metadata for other in others)]
        before.instructions.insert(-1, moved)
        self._moved[number, before] = moved
        return moved

    def _is_there(self, value: Value, before: BasicBlock) -> bool:
        block = self._block_of.get(value)
        return block is None or self._dominators.dominates(block, before)


def _takes_time(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Load | I.CallBase) or (
        isinstance(instruction, I.UnaryOp | I.BinaryOp | I.Cast) and holds_float(instruction.type)
    )
