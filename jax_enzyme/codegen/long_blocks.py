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

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

import llvmlite.binding as llvm

from jax_enzyme.ir.module import Module
from jax_enzyme.ir.pass_managers import Setting
from jax_enzyme.ir.values import BasicBlock

_LONG = 2000
"""Above so many instructions a block is long."""
_CUT = 4000
"""Above so many it is cut: of shorter ones pieces save less than a tenth of a second."""
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


def in_pieces(native: llvm.ModuleRef) -> str:
    """The text of a module without such blocks. As text, since to read it takes longer than what pieces save."""
    for function in native.functions:
        for entry in function.blocks:
            entry.name = entry.name or "entry"  # LLVM does not print what it is called otherwise
            break
    return _FUNCTION.sub(lambda found: _cut(found[0]), str(native))


_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r'^("[^"\n]*"|[-$.\w]+):', re.MULTILINE)
_INSTRUCTION = re.compile(r"^  (?=\S)", re.MULTILINE)
_FIXED = re.compile(r"^  %[^=\n]*= (?:phi|alloca) ", re.MULTILINE)
"""What pieces start behind: phis, and local variables, which are to stay what they are."""
_PHI = re.compile(r"^  %[^=\n]*= phi .*", re.MULTILINE)


def _cut(function: str) -> str:
    """The text of a function, its long blocks in pieces."""
    labels = list(_LABEL.finditer(function))
    ends = [*(label.start() for label in labels), len(function)]
    last: dict[str, str] = {}
    """The last piece of each block that is cut: from there control goes on."""
    parts = [function[: ends[0]]]
    for label, (start, end) in zip(labels, pairwise(ends), strict=True):
        places = [found.start() for found in _INSTRUCTION.finditer(function, start, end)]
        cuts: list[int] = []
        if len(places) > _LONG:
            fixed = max((found.start() for found in _FIXED.finditer(function, start, end)), default=-1)
            cuts = places[max(bisect_left(places, fixed) + 1, _PIECE) : -_PIECE : _PIECE]
        for number, (begin, stop) in enumerate(pairwise([start, *cuts, end])):
            if number:
                piece = last[label[1]] = f"je.piece.{label.start()}.{number}"
                parts.append(f"  br label %{piece}\n\n{piece}:\n")
            parts.append(function[begin:stop])
    text = "".join(parts)
    if not last:
        return text
    edges = re.compile("|".join(f"%{re.escape(block)} ]" for block in last))
    return _PHI.sub(lambda phi: edges.sub(lambda edge: f"%{last[edge[0][1:-2]]} ]", phi[0]), text)
