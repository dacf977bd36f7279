"""Values that are computed before it is known whether anything needs them.

    %q = fdiv double %p, %total              computed once, ahead of the loop, as optimisers do
    loop: br i1 %large, label %take, label %next
    take: %s = fmul double %x, %q

Where no iteration comes to `take`, %q may be infinite or no number, and nothing shows it. What is compared may be found
to be of no use, too: a distance of zero that is kept for the reverse of a step that divides by it. Only what may be so
for finite operands is looked at: quotients, results of calls, and what arithmetic makes of these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import PostDominators
from jax_enzyme.analysis.flow import holds_float, only_decides
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Uses, is_fused, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value


def speculated(function: Function, likely: bool = False) -> Collection[I.Instruction]:
    """Such values of one function, and those of the same kind that they are made of. `likely`: without those that the
    next iteration of a loop uses, if there is one, or that a `select` compares."""
    cfg = Cfg(function)
    endless: dict[Value, I.Instruction] = {}
    for block in cfg.rpo:
        for instruction in block.instructions:
            if holds_float(instruction.type) and _may_be_infinite(instruction, endless):
                endless[instruction] = instruction
    if not endless:
        return ()
    block_of: dict[Value, BasicBlock] = {i: b for b in cfg.rpo for i in b.instructions}
    certain, users = PostDominators(cfg), uses(function)
    order = {block: number for number, block in enumerate(cfg.rpo)}

    def is_needed(value: I.Instruction) -> bool:
        """Whether whatever comes behind a value makes a number of it: a block that is certain to run, or merges on all
        ways on, and nothing asks how large it is."""
        if any(_decides(user, users, likely) for user, _ in users.get(value, ())):
            return False
        merged: dict[BasicBlock, set[BasicBlock]] = {}
        for user, index in users.get(value, ()):
            if user not in block_of:
                continue
            if isinstance(user, I.Phi):
                if likely and order[block_of[user]] <= order[block_of[value]]:
                    return True
                merged.setdefault(user.targets[index], set()).add(block_of[user])
            elif certain.dominates(block_of[user], block_of[value]):
                return True
        return any(into >= set(cfg.succs[b]) and certain.dominates(b, block_of[value]) for b, into in merged.items())

    spare = [v for v in endless.values() if not is_needed(v)]
    return reached(spare, lambda value: _among(value.operands, endless))


def _decides(user: I.Instruction, users: Uses, likely: bool) -> bool:
    chooses = likely and all(isinstance(further, I.Select) for further, _ in users.get(user, ()))
    return only_decides(user) and not chooses


def _may_be_infinite(instruction: I.Instruction, endless: Collection[Value]) -> bool:
    if isinstance(instruction, I.Phi | I.Load):
        return False
    return may_be_infinite(instruction) or any(operand in endless for operand in instruction.operands)


def may_be_infinite(value: Value) -> bool:
    """Whether a value of finite numbers, or a partial of it, may be infinite or no number: a quotient, or a call."""
    if isinstance(value, I.CallBase):
        return not is_fused(value)
    if not isinstance(value, I.Instruction) or value.opcode not in ("fdiv", "frem"):
        return False
    return not isinstance(value.operands[1], Constant)


def _among(values: Sequence[Value], endless: dict[Value, I.Instruction]) -> list[I.Instruction]:
    return [endless[v] for v in values if v in endless]
