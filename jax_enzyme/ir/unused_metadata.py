"""Numbered nodes of metadata that nothing in a module refers to, directly or through others, go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.metadata import MDNode, MDRef, MDValue, MetadataOperand
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reach import Reached


def drop_unused_metadata(module: Module, change: Callable[[MDNode], MDNode]) -> None:
    """Changes the module, and every node that stays. It has no debug records: what those refer to would go."""
    nodes = module.metadata
    found: dict[str, MDNode] = {}
    reached = Reached((n for n in _numbers(_roots(module))), nodes.__contains__)
    for number in reached:
        node = found[number] = change(nodes[number])
        reached.add(_numbers(_values(node)))
    module.metadata = {number: found[number] for number in nodes if number in found}


def _roots(module: Module) -> Iterator[MDValue]:
    for nodes in module.named_metadata.values():
        yield from nodes
    for variable in module.globals.values():
        yield from (node for _, node in variable.metadata)
    for function in module.functions.values():
        yield from (node for _, node in function.metadata)
        for instruction in function.instructions():
            for _, node in instruction.metadata:
                yield node
            if isinstance(instruction, CallBase):
                yield from _operands(instruction.operands)


def _operands(operands: Iterable[object]) -> Iterator[MDValue]:
    """Metadata that is passed to a call."""
    return (operand.metadata for operand in operands if isinstance(operand, MetadataOperand))


def _values(node: MDNode) -> Iterator[MDValue]:
    yield from node.operands
    yield from (value for _, value in node.fields if not isinstance(value, str))


def _numbers(values: Iterable[MDValue]) -> Iterator[str]:
    """The numbers of nodes that values are, or hold."""
    for value in values:
        if isinstance(value, MDRef):
            yield value.number
        elif isinstance(value, MDNode):
            yield from _numbers(_values(value))
