"""Loops are kept apart by a name each, so that what is said of one is never taken for what is said of another.

    before    br i1 %c, label %outer, label %end              after    br i1 %c, label %outer, label %end, !llvm.loop !3
              br i1 %d, label %inner, label %e, !llvm.loop !7          !3 = distinct !{!3, !4}      !4 = !{!"je.name"}

What is said of a loop stands on the branch that closes it. LLVM hands it on: where it folds an empty block that closes
a loop, each branch into that block has it, the one too that enters the loop. If that one closes the loop around, the
loop around is marked. Of branches that have something themselves LLVM folds none. So branches by which a loop inside of
a marked one is left have a name too: else they would get what the marked one says, and lose it where the loop inside is
rotated.

    before    br i1 %c, label %body, label %latch           after    br i1 %c, label %body, label %latch, !llvm.loop !5
              latch: br label %outer, !llvm.loop !9                  latch: br label %outer, !llvm.loop !9
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir.debug import add_loop, add_node
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.marks import LOOP, REVERSED, has_marks, marks_of
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString
from jax_enzyme.ir.module import Module

_KIND = "llvm.loop"
_NAME = "je.name"


def name_loops(module: Module) -> None:
    """Gives, in place, every loop of a module with marks a name that has none, and branches out of one in a marked
    one."""
    if not has_marks(module):
        return
    word = add_node(module, MDNode(operands=[MDString(_NAME)]))
    for loop in _loops(module):
        for latch in loop.latches:
            _name(module, latch.terminator, word)
        if any(marks_of(module, latch.terminator) for latch in loop.latches):
            for block, _ in (edge for child in loop.children for edge in child.exit_edges):
                _name(module, block.terminator, word)


def _name(module: Module, branch: Instruction, word: MDRef) -> None:
    if all(kind != _KIND for kind, _ in branch.metadata):
        branch.metadata = [*branch.metadata, (_KIND, add_loop(module, [word]))]


def keep_own_names(module: Module) -> None:
    """Takes, in place, from a loop what is said of one inside of it by the same name."""
    if not has_marks(module):
        return
    for loop in _loops(module):
        within = {node for child in loop.children for node in _names(child)}
        for latch in loop.latches if within else ():
            if any(kind == _KIND and node in within for kind, node in latch.terminator.metadata):
                left = [(k, n) for k, n in latch.terminator.metadata if k not in (_KIND, LOOP, REVERSED)]
                latch.terminator.metadata = left


def _names(loop: Loop) -> list[MDRef]:
    """The names of a loop and of those inside of it."""
    own = [n for b in loop.latches for k, n in b.terminator.metadata if k == _KIND and isinstance(n, MDRef)]
    return own + [name for child in loop.children for name in _names(child)]


def _loops(module: Module) -> list[Loop]:
    return [loop for function in module.functions.values() if function.blocks for loop in Loops.of(function).all]
