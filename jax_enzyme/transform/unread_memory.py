"""Writes into memory whose contents nothing reads but what writes there go.

    before    for k: for i: u[i] = u[i] + a * v[i]; v[i] = v[i] - a * u[i]          of a function of which nobody asks
              ...                                                                   for u and v
    after     for k: for i: {}
              ...

A reverse sweep beside its forward sweep may read nothing of what a linear kernel computes. LLVM removes stores that no
load follows; here each store is followed by a load, for another store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.module import Function, GlobalVariable, Uses, used_at, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import ConstantExpr, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.private_globals import globals_in

_COMPUTES = (
    I.UnaryOp, I.BinaryOp, I.Cast, I.Compare, I.Select, I.Phi, I.Freeze, I.GetElementPtr, I.ExtractValue, I.InsertValue,
    I.ExtractElement, I.InsertElement, I.ShuffleVector,
)  # fmt: skip


def without_unread_writes(
    function: Function, unread: Collection[int], private: Collection[GlobalVariable] = ()
) -> Function:
    """A copy of a function under the same name without writes that only serve others of these, or the function itself.
    Of `unread` parameters, each of which leads to memory of its own, nobody reads the contents afterwards, nor of
    `private` variables, which nobody else uses."""
    users = uses(function)
    memory = _Memory()
    within = {g for v in users if isinstance(v, ConstantExpr) for g in globals_in(v)}
    variables = (g for g in private if g not in within)
    for root in (*(function.arguments[i] for i in unread), *variables, *filter(_is_own, function.instructions())):
        memory.add(root, users)
    if not memory.writes:
        return function
    needed = Reached[Value](i for i in function.instructions() if i not in memory.writes and not _only_computes(i))
    for value in needed:
        if isinstance(value, I.Instruction):
            needed.add(value.operands)
            needed.add(memory.behind(value))
    if all(write in needed for write in memory.writes):
        return function
    copies: dict[Value, Value] = {}
    copy = clone_function(function, function.name, copies)
    kept = {copies[i] for i in function.instructions() if i in needed}
    for block in copy.blocks:
        block.instructions = [i for i in block.instructions if i in kept]
    return copy


class _Memory:
    """Memory that is only read and written here, at addresses derived from one value: by what."""

    def __init__(self) -> None:
        self.writes: dict[I.Instruction, Value] = {}
        self._reads: dict[I.Instruction, set[Value]] = {}
        self._to: dict[Value, list[I.Instruction]] = {}

    def add(self, root: Value, users: Uses) -> None:
        """Nothing where an address may lead elsewhere, or be seen."""
        writes: list[I.Instruction] = []
        reads: list[I.Instruction] = []
        for user, index, _ in used_at(root, users):
            effect = call_effect(user) if isinstance(user, I.CallBase) else None
            match user:
                case I.Load() if I.is_plain(user):
                    reads.append(user)
                case I.Store() if I.is_plain(user) and index == 1:
                    writes.append(user)
                case I.AtomicRMW() if index == 0:
                    writes.append(user)
                    reads.append(user)
                case I.Call() if effect in (Effect.MEMORY_SET, Effect.MEMORY_COPY) and index == 0:
                    writes.append(user)
                case I.Call() if effect is Effect.MEMORY_COPY and index == 1:
                    reads.append(user)
                case I.Call() if effect in (Effect.IGNORED, Effect.FREE):
                    pass
                case _:
                    return
        self.writes.update(dict.fromkeys(writes, root))
        for read in reads:
            self._reads.setdefault(read, set()).add(root)
        self._to[root] = writes

    def behind(self, instruction: I.Instruction) -> Iterable[I.Instruction]:
        """What has to be written for what an instruction reads."""
        return [write for root in self._reads.get(instruction, ()) for write in self._to[root]]


def _is_own(instruction: I.Instruction) -> bool:
    is_allocation = isinstance(instruction, I.Call) and call_effect(instruction) is Effect.ALLOCATE
    return is_allocation or isinstance(instruction, I.Alloca)


def _only_computes(instruction: I.Instruction) -> bool:
    match instruction:
        case I.Load():
            return I.is_plain(instruction)
        case I.Call():
            return is_pure(instruction)
        case _:
            return isinstance(instruction, _COMPUTES)
