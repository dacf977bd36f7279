"""Copies of modules and functions. Passes copy what they are given, so that no argument ever changes.

A copy shares with its original only what never changes: types, texts, constants that name no global, and metadata that
names no value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from jax_enzyme.collector import collector_paused
from jax_enzyme.ir import values as V
from jax_enzyme.ir.instructions import Call, CallBase, Instruction
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode, MDRef, MDValue, MetadataOperand
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.nodes import Nodes
from jax_enzyme.ir.unused_metadata import drop_unused_metadata

_V = TypeVar("_V", bound=V.Value)

_SHARED = frozenset(
    (V.ConstantInt, V.ConstantFloat, V.ConstantNull, V.ConstantToken, V.Undef, V.Poison, V.ZeroInitializer)
)
"""Constants that hold no other value."""


def clone(module: Module) -> Module:
    """A deep copy."""
    return clone_with_map(module)[0]


def clone_with_map(module: Module) -> tuple[Module, dict[V.Value, V.Value]]:
    """A deep copy, and for every global, argument, block and instruction of the original its copy."""
    with collector_paused():
        return _clone(module, Cloner())


def own(module: Module) -> Module:
    """The module itself where nobody else needs it; a deep copy otherwise."""
    return own_with_map(module)[0]


def own_with_map(module: Module) -> tuple[Module, dict[V.Value, V.Value]]:
    """The same, and what `clone_with_map` says: of values that are not copied, themselves."""
    return (module, _Themselves()) if module.is_spent else clone_with_map(module)


class _Themselves(dict[V.Value, V.Value]):
    def __missing__(self, value: V.Value) -> V.Value:
        return value


def clone_without_debug(module: Module) -> Module:
    """A deep copy without debug records, locations and debug calls, and without the metadata that only they used."""
    with collector_paused():
        return _clone(module, _WithoutDebug())[0]


def with_room(module: Module) -> Module:
    """A module of the same functions, variables and nodes, to which more may be added."""
    nodes = module.metadata
    return replace(
        module,
        globals=dict(module.globals),
        functions=dict(module.functions),
        struct_bodies=dict(module.struct_bodies),
        attribute_groups=dict(module.attribute_groups),
        named_metadata={name: list(listed) for name, listed in module.named_metadata.items()},
        metadata=nodes.copied(lambda node: node) if isinstance(nodes, Nodes) else dict(nodes),
    )


def _clone(module: Module, cloner: Cloner) -> tuple[Module, dict[V.Value, V.Value]]:
    copy = Module(
        module.source_filename,
        module.identifier,
        module.data_layout,
        module.triple,
        list(module.module_asm),
        dict(module.struct_bodies),
        dict(module.comdats),
        attribute_groups=dict(module.attribute_groups),
    )
    copy.globals = {name: cloner.shell(g) for name, g in module.globals.items()}
    copy.aliases = {name: cloner.shell(a) for name, a in module.aliases.items()}
    functions = {name: f for name, f in module.functions.items() if cloner.keeps(name)}
    copy.functions = {name: cloner.function_shell(f) for name, f in functions.items()}
    for variable in copy.globals.values():
        if variable.initializer is not None:
            variable.initializer = cloner.constant(variable.initializer)
        variable.metadata = cloner.attachments(variable.metadata)
    for alias in copy.aliases.values():
        if alias.target is not None:
            alias.target = cloner.constant(alias.target)
    for name, function in functions.items():
        cloner.fill(function, copy.functions[name])
    named = {name: nodes for name, nodes in module.named_metadata.items() if cloner.keeps(name)}
    copy.named_metadata = {name: cloner.metadata_list(nodes) for name, nodes in named.items()}
    copy.metadata = cloner.numbered(module, copy)
    return copy, cloner.map


def clone_function(function: Function, name: str, substitution: dict[V.Value, V.Value] | None = None) -> Function:
    """A copy of a function under another name, not yet in any module.

    Values in `substitution` are replaced by what they map to; afterwards the dictionary also maps every argument, block
    and instruction to its copy. Calls of the function to itself still call the original, unless `substitution` says
    otherwise; addresses of its blocks are those of the copy. The copy has no `!dbg` of its own, since LLVM allows one
    function per subprogram; its instructions keep theirs. Nor is it in a comdat: that of the original has its name."""
    cloner = Cloner({} if substitution is None else substitution)
    recursion = cloner.map.get(function)
    copy = cloner.function_shell(function)
    copy.name = name
    if recursion is not None:
        cloner.map[function] = recursion
    else:
        del cloner.map[function]
    cloner.own = (function, copy)
    cloner.fill(function, copy)
    copy.metadata = [(kind, node) for kind, node in copy.metadata if kind != "dbg"]
    copy.attributes = tuple(word for word in copy.attributes if not word.startswith("comdat"))
    return copy


def with_operands(instruction: Instruction, operands: Iterable[V.Value]) -> Instruction:
    """A copy of one instruction with other operands: the same targets and metadata, without debug records."""
    copy = Cloner({}).shell(instruction)
    copy.operands, copy.targets = list(operands), list(instruction.targets)
    copy.metadata, copy.records = list(instruction.metadata), ()
    if isinstance(copy, CallBase):
        copy.parameter_attributes, copy.bundles = list(copy.parameter_attributes), []
    return copy


def twin_of(value: _V) -> _V:
    """Another value of the same class, with the very same things in it."""
    return _copier(type(value))(value)


@cache
def _copier(kind: type) -> Callable[[Any], Any]:
    """Copies what is of a class slot by slot, without running a constructor. Written out, as `dataclass` does it: going
    through the slots in a loop takes six times as long."""
    slots = [slot for base in kind.__mro__ for slot in base.__dict__.get("__slots__", ())]
    lines = ["copy = new(kind)", *(f"copy.{slot} = thing.{slot}" for slot in slots), "return copy"]
    scope: dict[str, Any] = {"new": object.__new__, "kind": kind}
    exec("\n    ".join(["def copied(thing):", *lines]), scope)
    return scope["copied"]


class Cloner:
    """`map` takes every value that has been copied, or is to be replaced, to what stands in its place."""

    def __init__(self, substitution: dict[V.Value, V.Value] | None = None) -> None:
        self.map: dict[V.Value, V.Value] = {} if substitution is None else substitution
        self.own: tuple[Function, Function] | None = None
        self._nodes: dict[MDNode, MDNode] = {}

    def shell(self, value: _V) -> _V:
        copy = self.map[value] = twin_of(value)
        return copy

    def function_shell(self, function: Function) -> Function:
        """A copy with arguments and empty blocks."""
        copy = self.shell(function)
        copy.arguments = [self._argument(a) for a in function.arguments]
        copy.blocks = [self._block(b) for b in function.blocks]
        return copy

    def _argument(self, argument: V.Argument) -> V.Argument:
        if argument in self.map:
            return twin_of(argument)
        return self.shell(argument)

    def _block(self, block: V.BasicBlock) -> V.BasicBlock:
        copy = self.shell(block)
        copy.instructions = []
        return copy

    def fill(self, function: Function, copy: Function) -> None:
        """The bodies of the blocks, and all else that refers to values."""
        shells: list[Instruction] = []
        for block, target in zip(function.blocks, copy.blocks, strict=True):
            target.instructions = [self.shell(i) for i in self.body(block)]
            shells += target.instructions
        for instruction in shells:
            self._operands(instruction)
        if function.personality is not None:
            copy.personality = self.constant(function.personality)
        if function.prefix_data is not None:
            copy.prefix_data = self.constant(function.prefix_data)
        if function.prologue_data is not None:
            copy.prologue_data = self.constant(function.prologue_data)
        copy.metadata = self.attachments(function.metadata)
        copy.trailing_records = self._records(function.trailing_records)

    def blocks(self, blocks: Sequence[V.BasicBlock]) -> list[V.BasicBlock]:
        """Copies of some blocks of a function, without debug records. What they use of others stays what it is, but for
        what is in `map`."""
        copies = [self._block(block) for block in blocks]
        for block, copy in zip(blocks, copies, strict=True):
            copy.instructions = [self.shell(i) for i in block.instructions]
        for instruction in (i for copy in copies for i in copy.instructions):
            instruction.records = ()
            self._operands(instruction)
        return copies

    def _operands(self, copy: Instruction) -> None:
        known = self.map.get
        copy.operands = [known(v) or self.value(v) for v in copy.operands]
        copy.targets = [self._target(b) for b in copy.targets]
        copy.metadata = self.attachments(copy.metadata) if copy.metadata else []
        if copy.records:
            copy.records = tuple(self._records(copy.records))
        if isinstance(copy, CallBase):
            copy.parameter_attributes = list(copy.parameter_attributes)
            copy.bundles = [(tag, [self.value(v) for v in values]) for tag, values in copy.bundles]

    def _target(self, block: V.BasicBlock) -> V.BasicBlock:
        found = self.map.get(block, block)
        assert isinstance(found, V.BasicBlock)
        return found

    def value(self, value: V.Value) -> V.Value:
        found = self.map.get(value)
        if found is not None:
            return found
        if type(value) in _SHARED:
            return value
        if isinstance(value, V.Constant):
            return self.constant(value)
        return value

    def constant(self, value: V.Constant) -> V.Constant:
        found = self.map.get(value)
        if isinstance(found, V.Constant):
            return found
        match value:
            case MetadataOperand():
                return MetadataOperand(value.type, self.metadata(value.metadata))
            case V.ConstantAggregate():
                return V.ConstantAggregate(value.type, self._constants(value.elements))
            case V.ConstantSplat():
                return V.ConstantSplat(value.type, self.constant(value.element))
            case V.ConstantExpr():
                operands = self._constants(value.operands)
                return V.ConstantExpr(value.type, value.opcode, operands, value.flags, value.source_type)
            case V.DSOLocalEquivalent():
                return V.DSOLocalEquivalent(value.type, value.keyword, self.constant(value.target))
            case V.PtrAuth():
                return V.PtrAuth(value.type, self._constants(value.operands))
            case V.BlockAddress():
                function = self.constant(value.function)
                if self.own is not None and value.function is self.own[0]:
                    function = self.own[1]
                return V.BlockAddress(value.type, function, self._target(value.block))
            case _:
                return value

    def _constants(self, values: Iterable[V.Constant]) -> list[V.Constant]:
        return [self.constant(v) for v in values]

    def body(self, block: V.BasicBlock) -> list[Instruction]:
        """The instructions that are copied."""
        return block.instructions

    # Metadata

    def keeps(self, name: str) -> bool:
        """Whether a function, or a list of metadata, of that name is copied."""
        return True

    def numbered(self, module: Module, copy: Module) -> MutableMapping[str, MDNode]:
        """Copies of the numbered nodes, once the rest of `copy` is there."""
        if isinstance(module.metadata, Nodes):
            return module.metadata.copied(self.numbered_node)
        return {number: self.numbered_node(node) for number, node in module.metadata.items()}

    def metadata(self, value: MDValue) -> MDValue:
        if isinstance(value, MDConstant):
            found = self.value(value.value)
            return value if found is value.value else MDConstant(found)
        if isinstance(value, MDNode):
            return self.node(value)
        return value

    def node(self, node: MDNode) -> MDNode:
        """The node itself where it names no value that is copied, as types of accesses: nobody changes such nodes
        in place."""
        if not _may_name_values(node):
            return node
        found = self._nodes.get(node)
        if found is None:
            copy = self.numbered_node(node)
            found = self._nodes[node] = node if _has_the_same(node, copy) else copy
        return found

    def numbered_node(self, node: MDNode) -> MDNode:
        """A node of the module's own, which is another one than the original's where it may name values, as most of
        debug information does not."""
        if not _may_name_values(node):
            return node
        fields = [(key, v if isinstance(v, str) else self.metadata(v)) for key, v in node.fields]
        return MDNode(node.kind, self.metadata_list(node.operands), fields, node.distinct)

    def metadata_list(self, values: Iterable[MDValue]) -> list[MDValue]:
        return [self.metadata(v) for v in values]

    def attachments(self, pairs: Iterable[tuple[str, MDValue]]) -> list[tuple[str, MDValue]]:
        return [pair if type(pair[1]) is MDRef else (pair[0], self.metadata(pair[1])) for pair in pairs]

    def _records(self, records: Iterable[DebugRecord]) -> list[DebugRecord]:
        return [DebugRecord(r.kind, self.metadata_list(r.operands)) for r in records]


def _may_name_values(node: MDNode) -> bool:
    return any(isinstance(v, _HOLDERS) for v in node.operands) or any(isinstance(v, _HOLDERS) for _, v in node.fields)


_HOLDERS = (MDConstant, MDNode)


def _has_the_same(node: MDNode, copy: MDNode) -> bool:
    same = all(map(operator.is_, node.operands, copy.operands))
    return same and all(v is w for (_, v), (_, w) in zip(node.fields, copy.fields, strict=True))


class _WithoutDebug(Cloner):
    def keeps(self, name: str) -> bool:
        return not name.startswith("llvm.dbg.")

    def body(self, block: V.BasicBlock) -> list[Instruction]:
        return [i for i in block.instructions if not isinstance(i, Call) or not self._is_debug(i.callee)]

    def _is_debug(self, callee: V.Value) -> bool:
        return isinstance(callee, Function) and not self.keeps(callee.name)

    def attachments(self, pairs: Iterable[tuple[str, MDValue]]) -> list[tuple[str, MDValue]]:
        return super().attachments((kind, node) for kind, node in pairs if kind != "dbg")

    def _records(self, records: Iterable[DebugRecord]) -> list[DebugRecord]:
        return []

    def numbered(self, module: Module, copy: Module) -> MutableMapping[str, MDNode]:
        copy.metadata = module.metadata
        drop_unused_metadata(copy, lambda node: self.numbered_node(_without_locations(node, module)))
        return copy.metadata


def _without_locations(node: MDNode, module: Module) -> MDNode:
    """Those in tuples go: loops carry two."""
    kept = [operand for operand in node.operands if not _is_location(operand, module)]
    return node if len(kept) == len(node.operands) else replace(node, operands=kept)


def _is_location(value: MDValue, module: Module) -> bool:
    node = module.metadata.get(value.number) if isinstance(value, MDRef) else value
    return isinstance(node, MDNode) and node.kind == "DILocation"
