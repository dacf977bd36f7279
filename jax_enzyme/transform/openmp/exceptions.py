"""Exceptions that leave a parallel region or a task go on, as in the serial program.

    before    landing: %pad = landingpad { ptr, i32 } catch ptr null          in the body of a region
                       %thrown = extractvalue { ptr, i32 } %pad, 0
                       call void @__clang_call_terminate(ptr %thrown)
                       unreachable

    after     landing: ...                                                    the same, and then
                       resume { ptr, i32 } %pad

OpenMP leaves open what happens, and clang ends the program. Here a call ends with the exception that is first in the
order of the program, and with its place.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.transform.openmp.calls import calls_of, replace_call

_BODIES = (".omp_outlined", ".omp_task_entry.")
_TERMINATE = "__clang_call_terminate"
_THROWN = T.StructType((T.PTR, T.I32))
_SILENT = "nounwind"


def let_exceptions_out(module: Module) -> None:
    """Changes the module so."""
    changed = False
    for function in module.functions.values():
        if not any(word in function.name for word in _BODIES):
            continue
        ends: list[BasicBlock] = []
        for block, call in calls_of(function, _TERMINATE):
            at = Builder(BasicBlock())
            thrown = _thrown(function, at, call.arguments[0])
            if thrown is not None:
                at.insert(I.Resume(T.VOID, "resume", [thrown]))
                block.instructions.pop()
                replace_call(block, call, at.block.instructions)
                ends.append(block)
        _catch_less(function, ends)
        changed |= bool(ends)
    for function in module.functions.values() if changed else ():
        if function.blocks:
            function.attributes = _without(module, function.attributes)
            for instruction in function.instructions():
                callee = callee_of(instruction)
                if callee is not None and callee.blocks and isinstance(instruction, I.CallBase):
                    instruction.attributes = _without(module, instruction.attributes)


def _thrown(function: Function, at: Builder, exception: Value) -> Value | None:
    """What a landing pad has, its exception and its type's number, of the exception alone: out of the pad, or out of
    the two variables that pads of destructors leave them in."""
    if isinstance(exception, I.ExtractValue):
        return exception.operands[0]
    slot = exception.operands[0] if isinstance(exception, I.Load) else None
    for block in function.blocks if slot is not None else ():
        kept = {
            i.operands[0].indices: i.operands[1]
            for i in block.instructions
            if isinstance(i, I.Store) and isinstance(i.operands[0], I.ExtractValue)
        }
        if kept.get((0,)) is slot and (1,) in kept:
            return at.pack(_THROWN, [exception, at.load(T.I32, kept[1,])])
    return None


def _catch_less(function: Function, ends: list[BasicBlock]) -> None:
    """Pads behind which exceptions go on now do not catch all of them any more: no handler lies in between."""
    for block in function.blocks if ends else ():
        for pad in block.instructions:
            if isinstance(pad, I.LandingPad) and any(b in ends for b in reached([block], _before_handlers)):
                kept = [
                    (c, v) for c, v in zip(pad.clauses, pad.operands, strict=True) if not isinstance(v, ConstantNull)
                ]
                pad.clauses, pad.operands = tuple(kind for kind, _ in kept), [v for _, v in kept]
                pad.flags = ("cleanup",)


def _before_handlers(block: BasicBlock) -> list[BasicBlock]:
    handled = any(callee_name(i) == "__cxa_begin_catch" for i in block.instructions)
    return [] if handled else list(block.successors)


def _without(module: Module, words: tuple[str, ...]) -> tuple[str, ...]:
    expanded = expanded_attributes(module, words)
    return tuple(word for word in expanded if word != _SILENT) if _SILENT in expanded else words
