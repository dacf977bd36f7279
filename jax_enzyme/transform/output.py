"""Code without its output: for derivatives of what has been run already, and has printed what it prints.

before    %n = call i32 (ptr, ...) @printf(ptr @.str, double %x)       after    (nothing; 0 where %n is used)
"""

from __future__ import annotations

from jax_enzyme.analysis.fortran_io import Statement, asks_files, statement
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.streams import puts_out
from jax_enzyme.transform.rewriting import forget_records, replace_values

_NEW_UNIT = "_FortranAioGetNewUnit"


def drop_output(module: Module) -> Module:
    """A copy of the module whose functions print nothing; the module itself where none does."""
    silent = {i for f in module.functions.values() for i in f.instructions() if _prints(module, i)}
    if not silent:
        return module
    copy, twins = clone_with_map(module)
    silent = {twins[i] for i in silent}
    for function in copy.functions.values():
        gone: dict[Value, Value] = {
            i: zero(i.type) for i in function.instructions() if i in silent and i.type != T.VOID
        }
        for block in function.blocks:
            old, block.instructions = block.instructions, []
            for instruction in old:
                if instruction not in silent:
                    block.instructions.append(instruction)
                elif instruction.opcode == "call" and instruction.operands[-1].name == _NEW_UNIT:
                    _give_unit(Builder(block), instruction)
        replace_values(function, gone)
        forget_records(function, set(gone))
    return copy


def _give_unit(at: Builder, call: I.Instruction) -> None:
    """The number of a file that is not opened: what would use it is gone as well."""
    size = int_value(call.operands[2]) or 4
    at.store(zero(T.IntType(8 * size)), call.operands[1], 1)


def _prints(module: Module, instruction: I.Instruction) -> bool:
    if not isinstance(instruction, I.Call) or not isinstance(instruction.callee, Function):
        return False
    name = instruction.callee.name
    if not instruction.callee.is_declaration:
        return False
    kind = statement(instruction)
    if kind is not None:
        return kind is Statement.CONSOLE or (kind is Statement.FILE and not asks_files(module))
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
