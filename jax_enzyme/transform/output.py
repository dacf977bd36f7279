"""Code without its output: for derivatives of what has been run already, and has printed what it prints.

before    %n = call i32 (ptr, ...) @printf(ptr @.str, double %x)       after    (nothing; 0 where %n is used)
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.streams import puts_out
from jax_enzyme.transform.rewriting import forget_records, replace_values


def drop_output(module: Module) -> Module:
    """A copy of the module whose functions print nothing; the module itself where none does."""
    if not any(_prints(i) for f in module.functions.values() for i in f.instructions()):
        return module
    copy = clone(module)
    for function in copy.functions.values():
        gone: dict[Value, Value] = {}
        for block in function.blocks:
            for instruction in block.instructions:
                if _prints(instruction) and instruction.type != T.VOID:
                    gone[instruction] = zero(instruction.type)
            block.instructions = [i for i in block.instructions if not _prints(i)]
        replace_values(function, gone)
        forget_records(function, set(gone))
    return copy


def _prints(instruction: I.Instruction) -> bool:
    if not isinstance(instruction, I.Call) or not isinstance(instruction.callee, Function):
        return False
    name = instruction.callee.name
    if not instruction.callee.is_declaration:
        return False
    return effect(name) is Effect.OUTPUT or (puts_out(name) and _is_global_stream(instruction.operands[0]))


def _is_global_stream(stream: Value) -> bool:
    """Whether a stream is one of the process. What goes into a local one is text that the kernel may read."""
    seen: set[Value] = set()
    pending = [stream]
    while pending:
        value = pending.pop()
        match value:
            case _ if value in seen:
                continue
            case GlobalVariable(initializer=None):
                pass
            case I.GetElementPtr():
                pending.append(value.operands[0])
            case I.Phi() | I.Select():
                pending += value.operands[isinstance(value, I.Select) :]
            case I.Call(callee=Function(name=name)) if puts_out(name):
                pending.append(value.operands[0])  # it returns its stream
            case _:
                return False
        seen.add(value)
    return True
