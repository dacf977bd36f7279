"""Blocks of thousands of instructions, as generators of code write them, become several.

    before    %a1 = fmul double %x, %y      LLVM's code generator selects instructions block by block, and looks at all
              ...                           loads of an array in a block for each of them; where registers run out, it
              %a9000 = fadd double %b, %c   looks at all uses of a value in a block for each value
              ret i64 0

    after     %a1 = fmul double %x, %y
              ...
              br label %piece
              piece:
              ...
              %a9000 = fadd double %b, %c
              ret i64 0

The time that all this takes grows with the square of the block. So does that of the vectoriser of straight-line code,
of the scheduler and of looking for what is computed twice: such code keeps its order, in sums too, and its constants
are read where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.pass_managers import Setting
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import split_before

_LONG = 2000
"""Above so many instructions a block is long."""
_PIECE = 500
IN_PIECES = (
    Setting("enable-misched", "false", usual="true"),
    Setting("disable-machine-cse", "true", usual="false"),
    Setting("disable-cgp", "true", usual="false"),
)
"""For the code generator. The last one is what would put pieces together again."""


def long_blocks(module: Module) -> list[BasicBlock]:
    return [b for f in module.functions.values() for b in f.blocks if len(b.instructions) > _LONG]


def keep_order(block: BasicBlock) -> None:
    """Sums are not to be put into another order."""
    for instruction in block.instructions:
        if "reassoc" in instruction.flags:
            instruction.flags = tuple(flag for flag in instruction.flags if flag != "reassoc")


def in_pieces(native: llvm.ModuleRef) -> Module:
    """The module without such blocks."""
    module = parse(str(native))
    for function in module.functions.values():
        for block in list(function.blocks):
            for start in reversed(_starts(block)):  # from the end on, so that each instruction moves once
                rest = split_before(function, block, start)
                Builder(block).br(rest)
    return module


def _starts(block: BasicBlock) -> Sequence[int]:
    """Where pieces of a block start: behind its phis, and behind local variables, which are to stay what they are."""
    count = len(block.instructions)
    if count <= _LONG:
        return ()
    fixed = max((n for n, i in enumerate(block.instructions) if isinstance(i, I.Phi | I.Alloca)), default=-1)
    return range(max(fixed + 1, _PIECE), count - _PIECE, _PIECE)
