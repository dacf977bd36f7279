"""Blocks of thousands of instructions, as generators of code write them, become several.

    before    %a1 = fmul double %x, %y      LLVM's code generator selects instructions block by block, and looks at all
              ...                           loads of an array in a block for each of them; where registers run out, it
              %a9000 = fadd double %b, %c   looks at all uses of a value in a block for each value
              ret i64 0

    after     %a1 = fmul double %x, %y
              ...
              callbr void asm "", ""() to label %piece []        assembly of no instructions, that may go on elsewhere:
              piece:                                             what ends with it LLVM puts together with nothing
              ...
              %a9000 = fadd double %b, %c
              ret i64 0

The time that all this takes grows with the square of the block. So does that of the vectoriser of straight-line code,
of the scheduler and of looking for what is computed twice: such code keeps its order, in sums too, and its constants
are read where they are used. Loops can become vectors only as they are: there blocks are cut when that is through.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.pass_managers import Setting
from jax_enzyme.ir.values import BasicBlock, InlineAsm
from jax_enzyme.transform.rewriting import redirect_phis

_LONG = 2000
"""Above so many instructions a block is long."""
_CUT = 4000
"""Above so many it is cut: of shorter ones pieces save less than a tenth of a second."""
_PIECE = 500
_IN_ORDER = (
    Setting("enable-misched", "false", usual="true"),
    Setting("disable-machine-cse", "true", usual="false"),
)
Place = tuple[Function, BasicBlock]

_NOTHING = T.FunctionType(T.VOID, ())
_HARMLESS = ("nounwind", "memory(none)")


def long_blocks(module: Module) -> list[BasicBlock]:
    return [b for f in module.functions.values() for b in f.blocks if len(b.instructions) > _LONG]


def settings(module: Module) -> tuple[Setting, ...]:
    """Those of the code generator."""
    return _IN_ORDER if long_blocks(module) else ()


def keep_order(block: BasicBlock) -> None:
    """Sums are not to be put into another order."""
    for instruction in block.instructions:
        if "reassoc" in instruction.flags:
            instruction.flags = tuple(flag for flag in instruction.flags if flag != "reassoc")


def to_cut(module: Module) -> tuple[list[Place], list[Place]]:
    """The blocks that pieces are worth their while for: those that are cut before the module is optimised, and those in
    loops."""
    straight: list[Place] = []
    looping: list[Place] = []
    for function in module.functions.values():
        found = [block for block in function.blocks if len(block.instructions) > _CUT]
        inside = {block for loop in Loops.of(function) for block in loop.blocks} if found else frozenset[BasicBlock]()
        for block in found:
            (looping if block in inside else straight).append((function, block))
    return straight, looping


def cut(places: Iterable[Place]) -> None:
    """Blocks become pieces, in place."""
    for function, block in places:
        whole = block.instructions
        fixed = max((n for n, i in enumerate(whole) if isinstance(i, I.Phi | I.Alloca)), default=-1)
        starts = range(max(fixed + 1, _PIECE), len(whole) - _PIECE, _PIECE)
        pieces = [block, *(BasicBlock(name="je.piece") for _ in starts)]
        for piece, (start, end) in zip(pieces, pairwise([0, *starts, len(whole)]), strict=True):
            piece.instructions = whole[start:end]
        for piece, following in pairwise(pieces):
            piece.instructions.append(_going_on(following))
        for target in pieces[-1].successors:
            redirect_phis(target, block, pieces[-1])
        behind = function.blocks.index(block) + 1
        function.blocks[behind:behind] = pieces[1:]


def _going_on(following: BasicBlock) -> I.CallBr:
    """What LLVM lets stand between two pieces."""
    nothing = InlineAsm(T.PTR, "", "")
    return I.CallBr(T.VOID, "callbr", [nothing], targets=[following], function_type=_NOTHING, attributes=_HARMLESS)
