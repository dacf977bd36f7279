"""What a tape's memory comes from, for derivatives that differentiate it like any other code.

Forward mode takes the functions of arenas for what they do: new memory, whose tangents are in new memory too. Reverse
mode would have to keep what they free, and follows their own code instead.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.tbaa import READS_INTEGER
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.rules.helpers import TAPE, link_tape


def with_tape_bodies(function: ArrayFunction) -> ArrayFunction:
    """The canonical form of an array function with those bodies; itself where it calls none of them."""
    if not any(f.is_declaration for name in TAPE if (f := function.module.functions.get(name)) is not None):
        return function
    module = clone(function.module)
    for linked in link_tape(module):
        for instruction in linked.instructions():
            if isinstance(instruction, I.Load) and instruction.type == T.I64:
                instruction.metadata.append(READS_INTEGER)
    return canonical(replace(function, module=module))
