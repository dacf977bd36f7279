"""Marks: what a program says about the iterations of a loop, as loop metadata, which optimisation keeps.

    br label %header, !llvm.loop !7
    !7 = distinct !{!7, !8, !9}      !8 = !{!"je.parallel"}      !9 = !{!"je.exclusive"}

The program is serial, and nothing but the last pass looks at marks: a mark that gets lost costs speed alone.
"""

from __future__ import annotations

from enum import Enum

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Module

_KIND = "llvm.loop"


class Mark(Enum):
    """`PARALLEL`: iterations may run in any order, and what they add up may be added in any. `EXCLUSIVE`: what one
    iteration writes of memory not its thread's own no other one accesses, neither plainly nor atomically."""

    PARALLEL = "je.parallel"
    EXCLUSIVE = "je.exclusive"


def mark(module: Module, latch: I.Instruction, marks: frozenset[Mark]) -> None:
    """Marks the loop that a branch closes, in place."""
    number = 1 + max((int(n) for n in module.metadata), default=-1)
    known = next((resolve(module, node) for kind, node in latch.metadata if kind == _KIND), None)
    held: list[MDValue] = [] if known is None else list(known.operands[1:])
    words = sorted(m.value for m in marks)
    for offset, word in enumerate(words, 1):
        module.metadata[str(number + offset)] = MDNode(operands=[MDString(word)])
        held.append(MDRef(str(number + offset)))
    module.metadata[str(number)] = MDNode(operands=[MDRef(str(number)), *held], distinct=True)
    latch.metadata = [*((k, n) for k, n in latch.metadata if k != _KIND), (_KIND, MDRef(str(number)))]


def mark_of(module: Module, latch: I.Instruction) -> frozenset[Mark]:
    """The marks of the loop that a branch closes."""
    found: set[Mark] = set()
    for kind, value in latch.metadata:
        node = resolve(module, value) if kind == _KIND else None
        for operand in node.operands[1:] if node is not None else ():
            held = resolve(module, operand)
            first = held.operands[0] if held is not None and held.operands else None
            if isinstance(first, MDString):
                found |= {m for m in Mark if m.value == first.text}
    return frozenset(found)
