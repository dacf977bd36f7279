"""Which instruction has what a load reads, too: said beside the load, where the value has another source.

    %s = load float, ptr %tile, !je.copied !3           %a = load float, ptr %input, !je.source !3

Nothing is computed from `%a`; what needs `%s` again may take it instead. A note that gets lost costs speed alone.
"""

from __future__ import annotations

from jax_enzyme.ir.debug import add_node
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString
from jax_enzyme.ir.module import Function, Module

_COPIED, _SOURCE = "je.copied", "je.source"


def note_source(module: Module, load: Instruction, source: Instruction) -> None:
    """Says, in place, that `source` has what `load` reads."""
    own = add_node(module, MDNode())
    module.metadata[own.number] = MDNode(operands=[MDString(_SOURCE), MDString(own.number)])
    load.metadata = [*load.metadata, (_COPIED, own)]
    source.metadata = [*source.metadata, (_SOURCE, own)]


def noted_sources(function: Function) -> dict[Instruction, Instruction]:
    """The sources of loads."""
    noted: dict[tuple[str, str], Instruction] = {}
    for instruction in function.instructions():
        for kind, node in instruction.metadata:
            if kind in (_COPIED, _SOURCE) and isinstance(node, MDRef):
                noted[kind, node.number] = instruction
    found = ((load, noted.get((_SOURCE, name))) for (kind, name), load in noted.items() if kind == _COPIED)
    return {load: source for load, source in found if source is not None}
