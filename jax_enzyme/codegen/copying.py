"""A private copy of a module, without debug information, for code generation to change at will.

Modules that the engine hands out are shared between derivations and between threads; nothing may write to them.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.instructions import Call, Instruction
from jax_enzyme.ir.metadata import MDNode, MDRef, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.unused_metadata import drop_unused_metadata


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
    copy.metadata = {number: _without_locations(node, copy) for number, node in copy.metadata.items()}
    drop_unused_metadata(copy)
    return copy


def _is_debug_call(instruction: Instruction) -> bool:
    callee = instruction.callee if isinstance(instruction, Call) else None
    return isinstance(callee, Function) and callee.name.startswith("llvm.dbg.")


def _kept(metadata: list[tuple[str, MDValue]]) -> list[tuple[str, MDValue]]:
    return [(kind, node) for kind, node in metadata if kind != "dbg"]


def _without_locations(node: MDNode, module: Module) -> MDNode:
    """Those in tuples go: loops carry two."""
    return replace(node, operands=[o for o in node.operands if not _is_location(o, module)])


def _is_location(value: MDValue, module: Module) -> bool:
    node = module.metadata.get(value.number) if isinstance(value, MDRef) else value
    return isinstance(node, MDNode) and node.kind == "DILocation"
