"""Puts checks before and behind instructions.

before    %v = load double, ptr %p               after    %bad = icmp ugt i64 %offset, 24
                                                          br i1 %bad, label %fails, label %fine
                                                        fails:
                                                          %s = call i64 @je_checked_outside(...)
                                                          call void @je.fails(i64 %s)          (never returns)
                                                          unreachable
                                                        fine:
                                                          %v = load double, ptr %p
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import NOTED
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failure_sites import FAILS
from jax_enzyme.transform.rewriting import phis, redirect_phis


@dataclass(frozen=True)
class Check:
    """`condition` builds what is true where there is a failure, `status` its status (or the call that fails by itself:
    then there is none). `unsure`: a status 0 is none."""

    condition: Callable[[Builder], Value]
    status: Callable[[Builder], Value | None]
    unsure: bool = False


NEVER_RETURNS = ("noreturn", "nounwind", "cold")
Checks = Mapping[I.Instruction, Sequence[Check]]


def insert_checks(function: Function, before: Checks, behind: Checks, declarations: Declarations) -> None:
    """Inserts all checks of a function, in place."""
    made: list[BasicBlock] = []
    for block in function.blocks:
        made.append(block)
        if not any(i in before or i in behind for i in block.instructions):
            continue
        old, block.instructions = block.instructions, []
        if block is function.entry:
            old = _variables_first(old, before, behind)
        current, successors = block, list(dict.fromkeys(old[-1].successors))
        for instruction in old:
            for check in before.get(instruction, ()):
                current = _insert(current, check, instruction, declarations, made)
            current.instructions.append(instruction)
            for check in behind.get(instruction, ()):
                current = _insert(current, check, instruction, declarations, made)
        if current is not block:
            for successor in successors:
                redirect_phis(successor, block, current)
    function.blocks = made


def _variables_first(instructions: list[I.Instruction], before: Checks, behind: Checks) -> list[I.Instruction]:
    """A variable of fixed size that comes behind a check would be in no entry block, and so one that is made at run
    time: it would go to the heap, where LLVM knows nothing of it."""
    fixed = [
        i
        for i in instructions
        if isinstance(i, I.Alloca) and int_value(i.operands[0]) is not None and i not in before and i not in behind
    ]
    moved = set(fixed)
    return [*fixed, *(i for i in instructions if i not in moved)]


def _insert(
    block: BasicBlock, check: Check, culprit: I.Instruction, declarations: Declarations, made: list[BasicBlock]
) -> BasicBlock:
    """The block that goes on where all is well."""
    start = len(block.instructions)
    failing, fine = BasicBlock(), BasicBlock()
    at = Builder(block)
    at.cond_br(check.condition(at), failing, fine)
    end = Builder(failing)
    status = check.status(end)
    made += [failing]
    if check.unsure and status is not None:
        last = BasicBlock()
        end.cond_br(end.icmp("ne", status, const_int(T.I64, 0)), last, fine)
        end = Builder(last)
        made += [last]
    if status is not None:
        declarations.invoke(end, FAILS, T.VOID, [status], attributes=NEVER_RETURNS)
    end.unreachable()
    made += [fine]
    position = [(kind, node) for kind, node in culprit.metadata if kind in ("dbg", NOTED)]
    for instruction in (*block.instructions[start:], *failing.instructions, *end.block.instructions):
        instruction.metadata = [*position, *((k, n) for k, n in instruction.metadata if k != "dbg")]
    return fine


def put_behind(function: Function, behind: Mapping[I.Instruction, Sequence[I.Instruction]]) -> None:
    """Inserts instructions behind others, in place; behind a phi that means behind all of them."""
    for block in function.blocks:
        own = [new for i in block.instructions if isinstance(i, I.Phi) for new in behind.get(i, ())]
        first = len(phis(block))
        result = block.instructions[:first] + own
        for instruction in block.instructions[first:]:
            result.append(instruction)
            result += behind.get(instruction, ())
        block.instructions = result
