"""Address spaces go: on a CPU there is one.

before    @part = external addrspace(3) global [0 x double]          ptr addrspacecast (ptr addrspace(3) @part to ptr)
after     @part = external global [0 x double]                       ptr @part
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.transform.rewriting import replace_values

SHARED = "addrspace(3)"
_SUFFIX = re.compile(r"\.p[1-9]\d*(?=\.|$)")


def drop_spaces(module: Module) -> dict[str, GlobalVariable]:
    """Changes a private module; returns the variables of shared memory, which are external now: what one thread finds
    there is not what it left."""
    shared: dict[str, GlobalVariable] = {}
    eraser = _Eraser()
    for name, variable in module.globals.items():
        if SHARED in variable.prefix:
            shared[name] = variable
            variable.initializer = None
            variable.prefix = ("external",)
        variable.prefix = tuple(w for w in variable.prefix if not w.startswith(("addrspace", "externally_")))
        variable.type = T.PTR
        variable.value_type = eraser.type(variable.value_type)
        if variable.initializer is not None:
            variable.initializer = eraser.constant(variable.initializer)
    for alias in module.aliases.values():
        alias.type, alias.value_type = T.PTR, eraser.type(alias.value_type)
        alias.target = None if alias.target is None else eraser.constant(alias.target)
    module.struct_bodies = {n: None if b is None else eraser.type(b) for n, b in module.struct_bodies.items()}
    for function in module.functions.values():
        _function(function, eraser)
    _merge_intrinsics(module)
    return shared


def _function(function: Function, eraser: _Eraser) -> None:
    function.type = T.PTR
    function.value_type = eraser.type(function.value_type)
    for argument in function.arguments:
        argument.type = eraser.type(argument.type)
    replaced: dict[V.Value, V.Value] = {}
    for block in function.blocks:
        kept: list[I.Instruction] = []
        for instruction in block.instructions:
            _instruction(instruction, eraser)
            if instruction.opcode == "addrspacecast":
                replaced[instruction] = instruction.operands[0]
            else:
                kept.append(instruction)
        block.instructions = kept
    replace_values(function, replaced)


def _instruction(instruction: I.Instruction, eraser: _Eraser) -> None:
    instruction.type = eraser.type(instruction.type)
    instruction.operands = [eraser.constant(v) if isinstance(v, V.Constant) else v for v in instruction.operands]
    match instruction:
        case I.Alloca():
            instruction.allocated_type = eraser.type(instruction.allocated_type)
        case I.GetElementPtr():
            instruction.source_type = eraser.type(instruction.source_type)
        case I.CallBase():
            kind = eraser.type(instruction.function_type)
            assert isinstance(kind, T.FunctionType)
            instruction.function_type = kind
        case _:
            pass


def _merge_intrinsics(module: Module) -> None:
    """`llvm.memcpy.p3.p0.i64` and its like are all called the same now."""
    renamed: dict[str, Function] = {}
    replaced: dict[V.Value, V.Value] = {}
    for function in module.functions.values():
        if function.name.startswith("llvm."):
            function.name = _SUFFIX.sub(".p0", function.name)
        first = renamed.setdefault(function.name, function)
        if first is not function:
            replaced[function] = first
    module.functions = renamed
    if replaced:
        for function in module.functions.values():
            replace_values(function, replaced)


class _Eraser:
    """Types and constants without address spaces."""

    def __init__(self) -> None:
        self.types: dict[T.Type, T.Type] = {}

    def type(self, type_: T.Type) -> T.Type:
        found = self.types.get(type_)
        if found is None:
            found = self.types[type_] = self._type(type_)
        return found

    def _type(self, type_: T.Type) -> T.Type:
        match type_:
            case T.PointerType():
                return T.PTR
            case T.VectorType() | T.ArrayType():
                return replace(type_, element=self.type(type_.element))
            case T.StructType():
                return replace(type_, elements=tuple(map(self.type, type_.elements)))
            case T.FunctionType():
                return replace(
                    type_, result=self.type(type_.result), parameters=tuple(map(self.type, type_.parameters))
                )
            case _:
                return type_

    def constant(self, value: V.Constant) -> V.Constant:
        match value:
            case V.GlobalValue() | V.BlockAddress():
                return value
            case V.ConstantExpr():
                operands = [self.constant(o) for o in value.operands]
                if value.opcode == "addrspacecast":
                    return operands[0]
                source = None if value.source_type is None else self.type(value.source_type)
                return V.ConstantExpr(self.type(value.type), value.opcode, operands, value.flags, source)
            case V.ConstantAggregate():
                return V.ConstantAggregate(self.type(value.type), [self.constant(e) for e in value.elements])
            case V.ConstantSplat():
                return V.ConstantSplat(self.type(value.type), self.constant(value.element))
            case V.ConstantNull() | V.Undef() | V.Poison() | V.ZeroInitializer():
                return type(value)(self.type(value.type))
            case _:
                return value


def expand(function: Function, places: Mapping[V.Value, V.Value]) -> None:
    """Constants of a function that name certain globals become instructions that use these values instead."""
    for block in function.blocks:
        index = 0
        while index < len(block.instructions):
            instruction = block.instructions[index]
            for number, operand in enumerate(instruction.operands):
                if not isinstance(operand, V.Constant) or not _names(operand, places):
                    continue
                made: list[I.Instruction] = []
                instruction.operands[number] = _expanded(operand, places, made)
                if isinstance(instruction, I.Phi):
                    source = instruction.targets[number]
                    at = len(source.instructions) - 1
                    source.instructions[at:at] = made
                else:
                    block.instructions[index:index] = made
                    index += len(made)
            index += 1


def _names(value: V.Constant, places: Mapping[V.Value, V.Value]) -> bool:
    if value in places:
        return True
    operands = value.operands if isinstance(value, V.ConstantExpr) else []
    return any(_names(o, places) for o in operands)


def _expanded(value: V.Constant, places: Mapping[V.Value, V.Value], made: list[I.Instruction]) -> V.Value:
    if value in places:
        return places[value]
    if not isinstance(value, V.ConstantExpr) or not _names(value, places):
        return value
    operands = [_expanded(o, places, made) for o in value.operands]
    if value.opcode == "getelementptr":
        assert value.source_type is not None
        flags = tuple(f for f in value.flags if not f.startswith("inrange"))
        made.append(I.GetElementPtr(value.type, value.opcode, operands, value.source_type, flags=flags))
    elif len(operands) == 1:
        made.append(I.Cast(value.type, value.opcode, operands))
    else:
        made.append(I.BinaryOp(value.type, value.opcode, operands, flags=value.flags))
    return made[-1]
