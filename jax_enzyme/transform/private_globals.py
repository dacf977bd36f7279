"""File-scope variables become local: a kernel starts every call from their initial values.

    before   @sum = internal global double 0.0           after   @sum = internal global double 0.0
             define i64 @je.primal(...) {                        define i64 @je.primal(...) {
               %a = load double, ptr @sum                          %sum = alloca double
                                                                   store double 0.0, ptr %sum
                                                                   %a = load double, ptr %sum

A JAX function is pure: it gives the same for the same arguments, on any thread, in any order, so what one call leaves
behind must not reach the next. Within a call nothing changes. Only variables that the root function alone uses can be
made local; one that a recursive function uses stays, and the engine refuses it where a derivative would pass through.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import (
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantInt,
    ConstantSplat,
    Value,
    ZeroInitializer,
)
from jax_enzyme.rules.declare import Declarations


def privatise(function: ArrayFunction) -> ArrayFunction:
    """The array function with its mutable globals made local; the very same where it has none."""
    if not _candidates(function.module, function.module.functions[function.symbol]):
        return function
    module = clone(function.module)
    root = module.functions[function.symbol]
    for variable in _candidates(module, root):
        _make_local(module, root, variable)
    return replace(function, module=module)


def _candidates(module: Module, root: Function) -> list[GlobalVariable]:
    used_elsewhere: set[Value] = set()
    for function in module.functions.values():
        if function is not root:
            for instruction in function.instructions():
                for operand in instruction.operands:
                    used_elsewhere.update(_globals_in(operand))
    for variable in module.globals.values():
        if variable.initializer is not None:
            used_elsewhere.update(_globals_in(variable.initializer))
    used_here = {g for i in root.instructions() for v in i.operands for g in _globals_in(v)}
    return [g for g in module.globals.values() if g in used_here and g not in used_elsewhere and _is_private(g)]


def _is_private(variable: GlobalVariable) -> bool:
    words = " ".join(variable.prefix)
    internal = "internal" in words or "private" in words
    return internal and not variable.is_constant and variable.initializer is not None and "thread_local" not in words


def _globals_in(value: Value) -> set[Value]:
    match value:
        case GlobalVariable():
            return {value}
        case ConstantExpr():
            return set[Value]().union(*map(_globals_in, value.operands))
        case ConstantAggregate():
            return set[Value]().union(*map(_globals_in, value.elements))
        case ConstantSplat():
            return _globals_in(value.element)
        case _:
            return set()


def _make_local(module: Module, root: Function, variable: GlobalVariable) -> None:
    """Replaces a global in `root`, in place, by an alloca that is filled at the start."""
    top = Builder(BasicBlock())
    local = top.alloca(variable.value_type, align=16)
    local.name = f"{variable.name}.local"
    size = ConstantInt(T.I64, DataLayout(module).alloc_size(variable.value_type))
    declarations = Declarations(module)
    no = ConstantInt(T.I1, 0)
    if isinstance(variable.initializer, ZeroInitializer):
        type_ = T.FunctionType(T.VOID, (T.PTR, T.I8, T.I64, T.I1))
        fill = declarations.function("llvm.memset.p0.i64", type_)
        top.call(fill, [local, ConstantInt(T.I8, 0), size, no])
    elif isinstance(variable.value_type, T.IntType | T.FloatType | T.PointerType):
        assert variable.initializer is not None
        top.store(variable.initializer, local)
    else:
        initial = GlobalVariable(
            T.PTR, variable.value_type, variable.initializer, True, ("private", "unnamed_addr"), name=_initial(variable)
        )
        module.globals[initial.name] = initial
        type_ = T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I64, T.I1))
        copy = declarations.function("llvm.memcpy.p0.p0.i64", type_)
        top.call(copy, [local, initial, size, no])
    replaced: dict[Value, Value] = {variable: local}
    for instruction in root.instructions():
        instruction.operands = [_localised(v, replaced, top) for v in instruction.operands]
    root.entry.instructions[:0] = top.block.instructions


def _initial(variable: GlobalVariable) -> str:
    return f"{variable.name}.initial"


def _localised(value: Value, replaced: dict[Value, Value], top: Builder) -> Value:
    """A value with the global replaced; addresses in it are computed once, at the start."""
    if not isinstance(value, Constant) or _globals_in(value).isdisjoint(replaced):
        return value
    if value not in replaced:
        assert isinstance(value, ConstantExpr), f"a global inside a {type(value).__name__} operand"
        operands = [_localised(v, replaced, top) for v in value.operands]
        replaced[value] = top.insert(_instruction(value, operands))
    return replaced[value]


def _instruction(expression: ConstantExpr, operands: list[Value]) -> I.Instruction:
    """The instruction that computes what a constant expression says."""
    match expression.opcode:
        case "getelementptr":
            assert expression.source_type is not None
            flags = tuple(f for f in expression.flags if not f.startswith("inrange"))
            return I.GetElementPtr(expression.type, "getelementptr", operands, expression.source_type, flags=flags)
        case "add" | "sub" | "xor":
            return I.BinaryOp(expression.type, expression.opcode, operands, flags=expression.flags)
        case opcode:
            return I.Cast(expression.type, opcode, operands, flags=expression.flags)
