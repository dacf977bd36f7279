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

from collections.abc import Iterable, Sequence

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
_CUT = 16_000
"""Above so many it is cut: reading a module and writing it again takes longer than what pieces save of shorter ones."""
_PIECE = 500
_IN_ORDER = (
    Setting("enable-misched", "false", usual="true"),
    Setting("disable-machine-cse", "true", usual="false"),
)
_IN_PIECES = Setting("disable-cgp", "true", usual="false")
"""What it switches off would put pieces together again."""


def long_blocks(module: Module) -> list[BasicBlock]:
    return [b for f in module.functions.values() for b in f.blocks if len(b.instructions) > _LONG]


def are_cut(blocks: Iterable[BasicBlock]) -> bool:
    """Whether pieces of long blocks are worth their while."""
    return any(len(block.instructions) > _CUT for block in blocks)


def settings(module: Module) -> tuple[Setting, ...]:
    """Those of the code generator."""
    long = long_blocks(module)
    return (*_IN_ORDER, *([_IN_PIECES] if are_cut(long) else ())) if long else ()


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
