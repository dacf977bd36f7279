"""Loops that the source wants unrolled (`#pragma unroll`): the wish is met where it can be, and hidden otherwise.

    before    br i1 %more, label %loop, label %exit, !llvm.loop !7       !7 = distinct !{!7, !8}
                                                                         !8 = !{!"llvm.loop.unroll.enable"}
    after     the iterations one by one; where nobody knows how many there are, the loop as it is,
                                                                         !8 = !{!"hide.loop.unroll.enable"}

LLVM's pipelines print a warning for every such loop that is left at their end, which is no concern of who calls a
kernel: our own run-time libraries loop over tables that are mostly constant, but not always. The wish
stays, under a name that means nothing to LLVM, for the next time: what is simplified in between may show the number.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.ir.metadata import MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.native import native_from_bitcode
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.ir.pass_managers import drop_dead_stores, run_on_functions

_WISH, _HIDDEN = "llvm.loop.unroll.", "hide.loop.unroll."
"""Of one length: one stands in for the other in bitcode, which has the strings of metadata byte by byte."""
_WISHES = ("enable", "full", "count")
_ROUNDS = 2
"""What one loop is unrolled to may say how often another runs."""


def optimised(source: Module, native: llvm.ModuleRef, pipeline: Pipeline, builder: llvm.PassBuilder) -> llvm.ModuleRef:
    """`native` after the whole pipeline; where its `source` wants loops unrolled, after as much of it as that takes."""
    if not (_says(source, _WISH) or _says(source, _HIDDEN)):
        return pipeline.run(native, builder)
    code = native.as_bitcode()
    for turn in range(_ROUNDS):
        wishing = _renamed(code, _HIDDEN, _WISH)
        if turn and wishing == code:  # all of them are met, or gone
            break
        if pipeline.is_for_clang(native, wishing):
            code, is_unrolled = pipeline.through_clang(native, wishing)
        else:
            native = _parsed(wishing)
            run_on_functions(builder.getFunctionPassManager(), native.functions, builder, pipeline.settings)
            native = _parsed(_renamed(native.as_bitcode(), _WISH, _HIDDEN))
            code, is_unrolled = pipeline.run(native, builder).as_bitcode(), True
        code = _renamed(code, _WISH, _HIDDEN)
        if not is_unrolled:
            break
    native = _parsed(code)
    if pipeline.stores_stay:
        drop_dead_stores(native, builder)
    return native


def _renamed(code: bytes, old: str, new: str) -> bytes:
    """Bitcode with the wishes under another name. After inlining the text of a module may be very long, and LLVM takes
    longest to write and read the numbers of tables."""
    for wish in _WISHES:
        code = code.replace(f"{old}{wish}".encode(), f"{new}{wish}".encode())
    return code


def _parsed(code: bytes) -> llvm.ModuleRef:
    return native_from_bitcode(code)


def _says(module: Module, name: str) -> bool:
    """Whether a node says so, and neither `disable` nor how a loop is to go on that has been unrolled."""
    firsts = [node.operands[0] for _, node in of_kind(module.metadata, "") if node.operands]
    return any(isinstance(f, MDString) and f.text == name + wish for f in firsts for wish in _WISHES)
