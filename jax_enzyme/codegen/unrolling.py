"""Loops that the source wants unrolled (`#pragma unroll`): the wish is met where it can be, and then forgotten.

    before    br i1 %more, label %loop, label %exit, !llvm.loop !7       !7 = distinct !{!7, !8}
                                                                         !8 = !{!"llvm.loop.unroll.enable"}
    after     the iterations one by one; where nobody knows how many there are, the loop, and !7 = distinct !{!7}

LLVM's pipelines print a warning for every such loop that is left at their end, which is no concern of who calls a
kernel: our own run-time libraries loop over tables that are mostly constant, but not always.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import parse_checked

_WISH = "llvm.loop.unroll."
_ROUNDS = 2
"""What one loop is unrolled to may say how often a loop inside it runs."""


def unrolled(source: Module, native: llvm.ModuleRef, builder: llvm.PassBuilder) -> llvm.ModuleRef:
    """`native` without loops that are to be unrolled: simplified where its `source` has any, as it is where not."""
    if not _wishes(source):
        return native
    passes = builder.getFunctionPassManager()
    for function in native.functions:
        for _ in range(0 if function.is_declaration else _ROUNDS):
            passes.run(function, builder)
    module = parse(str(native))
    wishes = _wishes(module)
    for node in module.metadata.values():
        node.operands = [o for o in node.operands if not (isinstance(o, MDRef) and o.number in wishes)]
    return parse_checked(module)


def _wishes(module: Module) -> frozenset[str]:
    """The nodes that say so: neither `disable` nor how a loop is to go on that has been unrolled."""
    return frozenset(number for number, node in module.metadata.items() if _is_wish(node))


def _is_wish(node: MDNode) -> bool:
    first: MDValue | None = node.operands[0] if node.operands else None
    return isinstance(first, MDString) and first.text in (_WISH + "enable", _WISH + "full", _WISH + "count")
