"""Calls that say nothing of a function's parameters, as C before 2023 has them, pass what the function takes.

    before    %r = call i32 (...) @work(ptr %x, i32 0, i64 %n)         of a function that takes ptr, ptr and i32

    after     %n.1 = trunc i64 %n to i32
              %r = call i32 @work(ptr %x, ptr null, i32 %n.1)

Clang writes such a call as one of a variadic function, of arguments as the caller has them. Where these are not of the
types that the function takes, C leaves open what happens, and machines do the same everywhere: a zero is a null pointer
too, the upper half of an integer is not read, nor is what comes behind the parameters. LLVM would not inline the call,
and to whoever asks where pointers lead an integer leads nowhere.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module, callee_of
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.rewriting import locate


def name_parameters(module: Module) -> Module:
    """A copy of the module in which calls of its functions are of the functions' types; itself where they are."""
    if not any(_is_open(i) for f in module.functions.values() for i in f.instructions()):
        return module
    copy = clone(module)
    for block in (b for f in copy.functions.values() for b in f.blocks):
        kept: list[I.Instruction] = []
        for instruction in block.instructions:
            if _is_open(instruction):
                assert isinstance(instruction, I.CallBase)
                callee = callee_of(instruction)
                assert callee is not None
                kept += pass_as(callee.function_type, instruction)
            kept.append(instruction)
        block.instructions = kept
    return copy


def _is_open(instruction: I.Instruction) -> bool:
    callee = callee_of(instruction)
    if callee is None or callee.is_declaration or not isinstance(instruction, I.CallBase):
        return False
    return instruction.function_type != callee.function_type and fits(callee.function_type, instruction)


def fits(kind: T.FunctionType, call: I.CallBase) -> bool:
    """Whether a function of a type may be what a call is of; what it returns may be of no use to the call."""
    if kind == call.function_type:
        return True
    if kind.variadic or call.type not in (T.VOID, kind.result):
        return False
    if not call.function_type.variadic:
        return kind.parameters == call.function_type.parameters
    return len(kind.parameters) <= len(call.arguments) and all(map(_passes, call.arguments, kind.parameters))


def _passes(value: Value, to: T.Type) -> bool:
    if value.type == to:
        return True
    if not isinstance(value.type, T.IntType):
        return False
    number = int_value(value)
    if not isinstance(to, T.IntType):
        return to == T.PTR and number == 0
    return value.type.bits > to.bits or (number is not None and number >= 0)


def pass_as(kind: T.FunctionType, call: I.CallBase) -> list[I.Instruction]:
    """Makes a call one of a function's type, which it fits, in place; what has to stand in front of it for that."""
    if call.function_type == kind:
        return []
    at = Builder(BasicBlock())
    given = call.arguments[: len(kind.parameters)]
    same = [value.type == to for value, to in zip(given, kind.parameters, strict=True)]
    attributes = [*call.parameter_attributes, *[()] * len(given)]
    call.parameter_attributes = [words if kept else () for words, kept in zip(attributes, same, strict=False)]
    call.operands = [*(_passed(at, value, to) for value, to in zip(given, kind.parameters, strict=True)), call.callee]
    call.function_type, call.type = kind, kind.result
    locate(call, at.block.instructions)
    return at.block.instructions


def _passed(at: Builder, value: Value, to: T.Type) -> Value:
    if value.type == to:
        return value
    if not isinstance(to, T.IntType):
        return zero(to)
    number = int_value(value)
    return at.cast("trunc", value, to) if number is None else const_int(to, number)
