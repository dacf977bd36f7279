"""The part of the structural check that is about memory: what reverse loads again has not been overwritten.

The argument is simpler than the plan's: after the load, control cannot come to anything that may write there. Memory is
told apart by where pointers come from, and by what they may point to only where that does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ad.execution import Execution
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import Access, PointsTo, accesses, call_effect
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value
from jax_enzyme.rules.effects import Effect


class EmissionError(LoweringError):
    """The engine emitted something that breaks one of its own rules."""

    def __init__(self, function: Function, cause: str) -> None:
        super().__init__(
            f"{function.name}: {cause}",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        )


def check_reload(load: I.Load, code: Function, points_to: PointsTo, layout: DataLayout, execution: Execution) -> None:
    """Raises EmissionError where something that may write the memory that a load reads can come after the load; in a
    function that is called, and of memory that other threads touch, where anything may write it at all."""
    is_root = code is points_to.root and not any(map(execution.shares, points_to.of(load.operands[0])))
    cfg = Cfg(code)
    home = {i: b for b in cfg.rpo for i in b.instructions}
    after = _reachable(cfg, home[load])
    roots = _roots(load.operands[0])
    called_later = _called((c for c in _calls(code) if home[c] in after or _follows(c, load, home[load])), points_to)
    for function in points_to.functions:
        for write in accesses(points_to, function, layout):
            if not write.writes or not _may_alias(roots, load.operands[0], write, points_to):
                continue
            if write.kills and all(not isinstance(r, Argument) for r in roots):
                continue  # what is freed late is there still
            if function is not code or not is_root:
                late = not is_root or function in called_later
            else:
                late = home.get(write.instruction) in after or _follows(write.instruction, load, home[load])
            if late:
                raise EmissionError(code, f"%{load.name} is loaded again although it may have been overwritten")


def _calls(code: Function) -> list[I.CallBase]:
    """The calls of functions with bodies, which may call on."""
    return [
        i
        for i in code.instructions()
        if isinstance(i, I.CallBase) and (not isinstance(i.callee, Function) or not i.callee.is_declaration)
    ]


def _called(calls: Iterable[I.CallBase], points_to: PointsTo) -> set[Function]:
    """The functions that calls enter, and those that these call; all, where one goes through a pointer."""
    found: set[Function] = set()
    pending = list(calls)
    while pending:
        callee = pending.pop().callee
        if not isinstance(callee, Function):
            return set(points_to.functions)
        if callee not in found:
            found.add(callee)
            pending += _calls(callee)
    return found


def _follows(second: I.Instruction, first: I.Instruction, block: BasicBlock) -> bool:
    return second in block.instructions and block.instructions.index(second) > block.instructions.index(first)


def _roots(pointer: Value) -> set[Value]:
    """What a pointer is computed from, through address arithmetic, choices and merges."""
    found: set[Value] = set()
    pending, seen = [pointer], {pointer}
    while pending:
        value = pending.pop()
        match value:
            case I.GetElementPtr() | I.Freeze():
                sources = value.operands[:1]
            case I.Select():
                sources = value.operands[1:]
            case I.Phi():
                sources = value.operands
            case _:
                found.add(value)
                continue
        pending += [v for v in sources if v not in seen]
        seen.update(sources)
    return found


def _may_alias(roots: set[Value], pointer: Value, write: Access, points_to: PointsTo) -> bool:
    """By where both pointers come from; by what they may point to only where that does not tell."""
    other = _roots(write.pointer)
    if all(map(_is_object, roots)) and all(map(_is_object, other)):
        return not roots.isdisjoint(other)
    objects = points_to.of(pointer)
    return not objects.isdisjoint(write.objects) or points_to.unknown in write.objects


def _is_object(root: Value) -> bool:
    """Whether a value is memory that nothing else is: a parameter of an array function, a local variable, fresh
    memory."""
    if isinstance(root, I.CallBase):
        return call_effect(root) is Effect.ALLOCATE
    return isinstance(root, I.Alloca | GlobalVariable | ConstantNull) or (
        isinstance(root, Argument) and "noalias" in " ".join(root.attributes)
    )


def _reachable(cfg: Cfg, block: BasicBlock) -> set[BasicBlock]:
    found: set[BasicBlock] = set()
    pending = list(cfg.succs[block])
    while pending:
        following = pending.pop()
        if following not in found:
            found.add(following)
            pending += cfg.succs[following]
    return found
