"""Checks of `registers`, of which nothing is left where what they hold has been computed.

before    %s = phi double [ 0.0, %a ], [ %t, %b ]                after    %s = phi ...
          %bad = icmp eq i64 (bitcast %s), <pattern>                      br label %fine
          br i1 %bad, label %fails, label %fine
"""

from __future__ import annotations

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import ConstantFloat, ConstantInt, Value
from jax_enzyme.transform.rewriting import go_one_way, redirect_phis, remove_unreachable, replace_values
from jax_enzyme.transform.sanitize.narrow import narrowly_checked
from jax_enzyme.transform.sanitize.registers import is_written
from jax_enzyme.transform.sanitize.scalars import compared_with_pattern, is_computed_with, is_pattern


def drop_certain_checks(function: Function) -> None:
    """Removes the checks of `registers` that cannot fail, and joins the blocks that they have parted, in place."""
    users = uses(function)
    for block in function.blocks:
        last = block.terminator
        if not isinstance(last, I.CondBranch) or last.targets[0] is last.targets[1]:
            continue
        checked = narrowly_checked(last)
        if checked is None:
            if not isinstance(last.targets[0].terminator, I.Unreachable):
                continue
            checked = compared_with_pattern(last.operands[0])
        if is_written(last.operands[0]) or (checked is not None and _is_certain(checked, users)):
            go_one_way(block, last.targets[1])
    remove_unreachable(function)
    _join(function)


def _is_certain(value: Value, users: Uses) -> bool:
    """Whether a number has been computed, or comes from memory where it is checked itself."""
    found = Reached([value])
    for source in found:
        match source:
            case I.Phi() | I.Select():
                found.add(I.merged(source))
            case I.UnaryOp() | I.Compare():
                pass
            case I.Call() if callee_name(source).startswith("llvm.fm"):  # products and sums, the least and the greatest
                pass
            case I.BinaryOp() if source.opcode not in ("and", "or"):  # they may move parts
                pass
            case I.Cast() if source.opcode not in ("bitcast", "ptrtoint", "inttoptr"):
                pass
            case ConstantInt() | ConstantFloat():
                if is_pattern(source):
                    return False
            case I.Load() if source is value and is_computed_with(source, users, but=compared_with_pattern):
                pass
            case _:
                return False
    return True


def _join(function: Function) -> None:
    """Makes one block of two that follow one another."""
    cfg = Cfg(function)
    gone = set[object]()
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        while block not in gone and isinstance(block.terminator, I.Branch):
            following = block.terminator.targets[0]
            if following is block or following is function.entry or len(cfg.preds[following]) != 1:
                break
            block.instructions.pop()
            for instruction in following.instructions:
                if isinstance(instruction, I.Phi):
                    replaced[instruction] = instruction.operands[0]
                else:
                    block.instructions.append(instruction)
            for successor in dict.fromkeys(following.successors):
                redirect_phis(successor, following, block)
                cfg.preds[successor] = [block if p is following else p for p in cfg.preds[successor]]
            gone.add(following)
    function.blocks = [block for block in function.blocks if block not in gone]
    replace_values(function, replaced)
