"""One rewriting of all types of a module, in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.lexer import NAME_CHARACTERS
from jax_enzyme.ir.module import Function, Module


def literal_structures(module: Module) -> None:
    """Named structures become literal ones in a private module: the engine looks into types without asking a module.
    (No structure contains itself, now that pointers do not say what they point to.)"""
    bodies = module.struct_bodies
    if bodies:
        retype(module, Retyping(lambda t: bodies.get(t.name) if isinstance(t, T.NamedStructType) else None))


class Retyping:
    """`change` says what a type becomes, None where only its parts change."""

    def __init__(self, change: Callable[[T.Type], T.Type | None]) -> None:
        self.change = change
        self.types: dict[T.Type, T.Type] = {}

    def type(self, type_: T.Type) -> T.Type:
        """The type that takes the place of a type."""
        found = self.types.get(type_)
        if found is None:
            changed = self.change(type_)
            found = self.types[type_] = self._parts(type_ if changed is None else changed)
        return found

    def _parts(self, type_: T.Type) -> T.Type:
        match type_:
            case T.VectorType() | T.ArrayType():
                return replace(type_, element=self.type(type_.element))
            case T.StructType():
                return replace(type_, elements=tuple(map(self.type, type_.elements)))
            case T.FunctionType():
                parameters = tuple(map(self.type, type_.parameters))
                return replace(type_, result=self.type(type_.result), parameters=parameters)
            case _:
                return type_

    def constant(self, value: V.Constant) -> V.Constant:
        """A constant of the new type. Casts between types that are the same now go."""
        match value:
            case V.GlobalValue() | V.BlockAddress():
                return value
            case V.ConstantExpr():
                operands = [self.constant(o) for o in value.operands]
                type_ = self.type(value.type)
                if value.opcode == "addrspacecast" and operands[0].type == type_:
                    return operands[0]
                source = None if value.source_type is None else self.type(value.source_type)
                return V.ConstantExpr(type_, value.opcode, operands, value.flags, source)
            case V.ConstantAggregate():
                return V.ConstantAggregate(self.type(value.type), [self.constant(e) for e in value.elements])
            case V.ConstantTable():
                return V.ConstantTable(self.type(value.type), self._table(value.text))
            case V.ConstantSplat():
                return V.ConstantSplat(self.type(value.type), self.constant(value.element))
            case V.ConstantNull() | V.Undef() | V.Poison() | V.ZeroInitializer():
                return type(value)(self.type(value.type))
            case _:
                return value

    def _table(self, text: str) -> str:
        """The text of a table with other names of structures; it names no other types that could change."""
        first, *others = text.split("%")
        parts = [first]
        for part in others:
            rest = part.lstrip(NAME_CHARACTERS)
            parts += [str(self.type(T.NamedStructType(part[: len(part) - len(rest)]))), rest]
        return "".join(parts)


def retype(module: Module, retyping: Retyping) -> None:
    """Changes the types of everything in a private module."""
    for variable in module.globals.values():
        variable.type = retyping.type(variable.type)
        variable.value_type = retyping.type(variable.value_type)
        if variable.initializer is not None:
            variable.initializer = retyping.constant(variable.initializer)
    for alias in module.aliases.values():
        alias.type, alias.value_type = retyping.type(alias.type), retyping.type(alias.value_type)
        alias.target = None if alias.target is None else retyping.constant(alias.target)
    for function in module.functions.values():
        _function(function, retyping)


def _function(function: Function, retyping: Retyping) -> None:
    function.type = retyping.type(function.type)
    function.value_type = retyping.type(function.value_type)
    for argument in function.arguments:
        argument.type = retyping.type(argument.type)
    for instruction in function.instructions():
        _instruction(instruction, retyping)


def _instruction(instruction: I.Instruction, retyping: Retyping) -> None:
    instruction.type = retyping.type(instruction.type)
    operands = [retyping.constant(v) if isinstance(v, V.Constant) else v for v in instruction.operands]
    instruction.operands = operands
    match instruction:
        case I.Alloca():
            instruction.allocated_type = retyping.type(instruction.allocated_type)
        case I.GetElementPtr():
            instruction.source_type = retyping.type(instruction.source_type)
        case I.CallBase():
            kind = retyping.type(instruction.function_type)
            assert isinstance(kind, T.FunctionType)
            instruction.function_type = kind
        case _:
            pass
