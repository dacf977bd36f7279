"""A private copy of a module, without debug information, for code generation to change at will.

Modules that the engine hands out are shared between derivations and between threads; nothing may write to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.instructions import Call, Instruction
from jax_enzyme.ir.metadata import MDNode, MDRef, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import MetadataOperand


def private_copy(module: Module) -> Module:
    """A deep copy without debug records, locations and debug calls, and without the metadata that only they used."""
    copy = clone(module)
    copy.functions = {name: f for name, f in copy.functions.items() if not name.startswith("llvm.dbg.")}
    for function in copy.functions.values():
        function.metadata = _kept(function.metadata)
        function.trailing_records = []
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if not _is_debug_call(i)]
            for instruction in block.instructions:
                instruction.records = []
                instruction.metadata = _kept(instruction.metadata)
    for variable in copy.globals.values():
        variable.metadata = _kept(variable.metadata)
    copy.named_metadata = {k: nodes for k, nodes in copy.named_metadata.items() if not k.startswith("llvm.dbg.")}
    copy.metadata = _reachable(copy)
    return copy


def _is_debug_call(instruction: Instruction) -> bool:
    callee = instruction.callee if isinstance(instruction, Call) else None
    return isinstance(callee, Function) and callee.name.startswith("llvm.dbg.")


def _kept(metadata: list[tuple[str, MDValue]]) -> list[tuple[str, MDValue]]:
    return [(kind, node) for kind, node in metadata if kind != "dbg"]


def _reachable(module: Module) -> dict[str, MDNode]:
    """The numbered nodes that something still refers to, in order. Locations in tuples (loops carry two) go."""
    found: dict[str, MDNode] = {}
    pending: list[MDValue] = [n for nodes in module.named_metadata.values() for n in nodes]
    pending += _attached(module)
    while pending:
        match pending.pop():
            case MDRef(number) if number not in found and number in module.metadata:
                found[number] = node = _without_locations(module.metadata[number], module)
                pending.append(node)
            case MDNode() as node:
                pending += node.operands
                pending += [value for _, value in node.fields if not isinstance(value, str)]
            case _:
                pass
    return {number: found[number] for number in module.metadata if number in found}


def _without_locations(node: MDNode, module: Module) -> MDNode:
    return replace(node, operands=[o for o in node.operands if not _is_location(o, module)])


def _is_location(value: MDValue, module: Module) -> bool:
    node = module.metadata.get(value.number) if isinstance(value, MDRef) else value
    return isinstance(node, MDNode) and node.kind == "DILocation"


def _attached(module: Module) -> Iterable[MDValue]:
    for variable in module.globals.values():
        yield from (node for _, node in variable.metadata)
    for function in module.functions.values():
        yield from (node for _, node in function.metadata)
        for instruction in function.instructions():
            yield from (node for _, node in instruction.metadata)
            yield from (v.metadata for v in instruction.operands if isinstance(v, MetadataOperand))
