"""A module: globals, functions, types, metadata. Plain containers; all ordering is the order of printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir import types as T
from jax_enzyme.ir.instructions import CallBase, GetElementPtr, Instruction, Phi
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantString,
    GlobalValue,
    Value,
    parts_of,
)

if TYPE_CHECKING:
    from jax_enzyme.ir.metadata import DebugRecord, MDNode, MDValue


@dataclass(eq=False, slots=True)
class GlobalVariable(GlobalValue):
    """`prefix` are the words before `global`/`constant` (linkage, visibility, `unnamed_addr` ...), `suffix` those after
    the initialiser (section, comdat, align), each as printed."""

    initializer: Constant | None = None
    is_constant: bool = False
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    metadata: list[tuple[str, MDValue]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class GlobalAlias(GlobalValue):
    """An alias or ifunc; `keyword` is which."""

    keyword: str = "alias"
    target: Constant | None = None
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Function(GlobalValue):
    """A definition (has blocks) or a declaration (has none). `prefix` are the words before the return type (linkage,
    visibility, calling convention), `return_attributes` those of the result, `attributes` what follows the parameter
    list (`unnamed_addr`, `#0`, `section`, `align`, `gc`, `personality ...` is `personality`)."""

    arguments: list[Argument] = field(default_factory=list)
    blocks: list[BasicBlock] = field(default_factory=list)
    prefix: tuple[str, ...] = ()
    return_attributes: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    personality: Constant | None = None
    prefix_data: Constant | None = None
    prologue_data: Constant | None = None
    metadata: list[tuple[str, MDValue]] = field(default_factory=list)
    trailing_records: list[DebugRecord] = field(default_factory=list)

    @property
    def is_declaration(self) -> bool:
        return not self.blocks

    @property
    def function_type(self) -> T.FunctionType:
        assert isinstance(self.value_type, T.FunctionType)
        return self.value_type

    @property
    def calling_convention(self) -> str:
        """What a call says for the function to be entered at all; what calls a kernel on a device does not say it."""
        word = self.prefix[-1] if self.prefix else ""
        return "" if word in LINKAGE or word.endswith("_kernel") else word

    @property
    def entry(self) -> BasicBlock:
        return self.blocks[0]

    def instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            yield from block.instructions

    def returned(self) -> list[Value]:
        """The values that its `ret` instructions return."""
        last = [block.terminator for block in self.blocks]
        return [i.operands[0] for i in last if i.opcode == "ret" and i.operands]


@dataclass(eq=False, slots=True)
class Module:
    """Whole module. `attribute_groups["0"]` is the text tuple of `attributes #0`; `metadata["12"]` the node `!12`;
    `named_metadata["llvm.module.flags"]` its operands. `is_spent`: nobody needs it as it is, and a pass may change it
    instead of a copy (`clone.own`)."""

    source_filename: str | None = None
    identifier: str = ""
    data_layout: str = ""
    triple: str = ""
    module_asm: list[str] = field(default_factory=list)
    struct_bodies: dict[str, T.Type | None] = field(default_factory=dict)
    comdats: dict[str, str] = field(default_factory=dict)
    globals: dict[str, GlobalVariable] = field(default_factory=dict)
    aliases: dict[str, GlobalAlias] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    attribute_groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named_metadata: dict[str, list[MDValue]] = field(default_factory=dict)
    metadata: MutableMapping[str, MDNode] = field(default_factory=dict[str, "MDNode"])
    is_spent: bool = False

    def symbol(self, name: str) -> GlobalValue | None:
        return self.functions.get(name) or self.globals.get(name) or self.aliases.get(name)

    def unused(self, name: str) -> str:
        """A name that nothing in the module has: this one, or with a number behind it."""
        number, found = 0, name
        while self.symbol(found) is not None:
            number += 1
            found = f"{name}.{number}"
        return found


def numbered(types: Iterable[T.Type]) -> list[Argument]:
    """New parameters of these types, in order."""
    return [Argument(type_, (), index) for index, type_ in enumerate(types)]


def declare(module: Module, name: str, kind: T.FunctionType, attributes: tuple[str, ...] = ()) -> Function:
    """The function of a name, declared if it is not there."""
    if name not in module.functions:
        module.functions[name] = Function(T.PTR, kind, numbered(kind.parameters), attributes=attributes, name=name)
    return module.functions[name]


def define(
    module: Module,
    name: str,
    result: T.Type,
    arguments: list[Argument],
    blocks: list[BasicBlock],
    prefix: tuple[str, ...] = ("internal",),
    attributes: tuple[str, ...] = (),
) -> Function:
    """A new function of the module."""
    kind = T.FunctionType(result, tuple(a.type for a in arguments))
    function = Function(T.PTR, kind, arguments, blocks, prefix, (), attributes, name=name)
    module.functions[name] = function
    return function


def is_fused(value: Value) -> TypeGuard[CallBase]:
    """Whether a call multiplies two numbers and adds a third."""
    return callee_name(value).startswith(("llvm.fma.", "llvm.fmuladd."))


def callee_of(value: Value) -> Function | None:
    """The function that an instruction calls; None where it calls none, or through a pointer."""
    if not isinstance(value, CallBase):
        return None
    callee = value.operands[-1]
    return callee if isinstance(callee, Function) else None


def callers_of(functions: Iterable[Function]) -> dict[Function, list[Function]]:
    """Which of some functions call each function by its name."""
    found: dict[Function, list[Function]] = {}
    for function in functions:
        for callee in dict.fromkeys(map(callee_of, function.instructions())):
            if callee is not None:
                found.setdefault(callee, []).append(function)
    return found


def callee_name(value: Value) -> str:
    """Its name; empty where there is none."""
    callee = callee_of(value)
    return "" if callee is None else callee.name


def declared_callee(value: Value) -> Function | None:
    """The function that an instruction calls, where that has no body in this module."""
    callee = callee_of(value)
    return callee if callee is not None and callee.is_declaration else None


def declared_name(value: Value) -> str:
    """The name of a function without body that an instruction calls; empty where it does something else."""
    callee = declared_callee(value)
    return "" if callee is None else callee.name


Uses: TypeAlias = Mapping[Value, Sequence[tuple[Instruction, int]]]
"""Where values are used: value -> [(user, operand index)]."""


def constant_bytes(pointer: Value) -> bytes | None:
    """The bytes of the constant text that a pointer leads to, itself or as the only member of a structure; None for
    other pointers."""
    if not isinstance(pointer, GlobalVariable) or not pointer.is_constant:
        return None
    held = pointer.initializer
    if isinstance(held, ConstantAggregate) and len(held.elements) == 1:
        held = held.elements[0]
    return held.data if isinstance(held, ConstantString) else None


def uses(function: Function) -> Uses:
    """Where each value is used in a function. Made on demand, not kept up to date."""
    table: dict[Value, list[tuple[Instruction, int]]] = {}
    for instruction in function.instructions():
        for index, operand in enumerate(instruction.operands):
            table.setdefault(operand, []).append((instruction, index))
    return table


def used_at(
    root: Value, users: Uses, through: tuple[type[Instruction], ...] = ()
) -> Iterator[tuple[Instruction, int, Value]]:
    """What uses an address, or one that is computed from it (and what comes `through` others): each instruction, as
    which of its operands, and which of these addresses."""
    addresses = Reached([root])
    for address in addresses:
        for user, index in users.get(address, ()):
            if (isinstance(user, GetElementPtr) and index == 0) or isinstance(user, through):
                addresses.add([user])
            else:
                yield user, index, address


def take_apart(module: Module, successor: Module | None = None) -> None:
    """Empties the blocks of a module that nobody is going to look at any more, but for functions that a successor has
    as well. Blocks and phis lead around to themselves: their memory would stay until all that there is in this process
    is searched for such circles, which takes longer than a pass."""
    kept = set[Function]() if successor is None else set(successor.functions.values())
    for function in module.functions.values():
        if function not in kept:
            empty(function)


def empty(function: Function) -> None:
    """The same of one function: whoever looks at it all the same finds blocks without an end."""
    for block in function.blocks:
        for instruction in block.instructions:
            if not isinstance(instruction, Phi):
                break
            instruction.operands.clear()
        block.instructions.clear()


def named_by(value: Value) -> Iterator[Value]:
    """The constants, functions and variables among them, that a symbol or a constant is made of."""
    held: list[Value | None] = []
    match value:
        case Function():
            held = [value.personality, value.prefix_data, value.prologue_data]
            held += [v for i in value.instructions() for v in i.operands if isinstance(v, Constant)]
        case GlobalVariable():
            held = [value.initializer]
        case GlobalAlias():
            held = [value.target]
        case _:
            held += parts_of(value)
    return (v for v in held if v is not None)


def only_reached(module: Module, root: Function) -> Module:
    """A module without the function bodies that neither `root`, nor what it calls, nor any global names."""
    found = reached([root, *module.globals.values(), *module.aliases.values()], named_by)
    kept = {name: f for name, f in module.functions.items() if f.is_declaration or f in found}
    return replace(module, functions=kept)
