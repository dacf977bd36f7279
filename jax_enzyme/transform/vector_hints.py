"""What directives say about vectors waits until the engine has seen the loops.

Under OpenMP's `simd` clang says that a loop is to be vectorised, which LLVM does even where it is told not to, and that
no two accesses of different iterations meet:

    before    br label %header, !llvm.loop !7      !7 = distinct !{!7, !8, !9}
              !8 = !{!"llvm.loop.vectorize.enable", i1 true}      !9 = !{!"llvm.loop.parallel_accesses", !10}
    hidden    !8 = !{!"je.vectorize.enable", i1 true}, and no access says that it is of the group !10
    shown     !8 = !{!"llvm.loop.vectorize.enable", i1 true}

The engine differentiates loops as they are in the source. What is said of accesses goes for good: the directive says it
of shared memory, and clang of what is private to an iteration too, of which there is one copy for all:

    #pragma omp simd reduction(+ : h)
    for (int i = 0; i < n; i++) h[index[i]] += x[i];       // two equal indices in one vector: one would be lost

What LLVM can prove, and check when the loop is entered, is enough.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir.metadata import MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.nodes import of_kind

_ENABLE = "llvm.loop.vectorize.enable"
_HIDDEN = "je.vectorize.enable"
_PARALLEL = "llvm.loop.parallel_accesses"
_GROUP = "llvm.access.group"


def hide_vector_hints(module: Module) -> None:
    """Takes back, in place, what is said of accesses, and hides that loops are to be vectorised."""
    _rename(module, _ENABLE, _HIDDEN)
    if not any(node.operands[:1] == [MDString(_PARALLEL)] for _, node in of_kind(module.metadata, "")):
        return  # no loop says anything of a group
    for function in module.functions.values():
        for instruction in function.instructions():
            if any(kind == _GROUP for kind, _ in instruction.metadata):
                instruction.metadata = [(kind, node) for kind, node in instruction.metadata if kind != _GROUP]


def show_vector_hints(module: Module) -> None:
    """Says again, in place, that loops are to be vectorised."""
    _rename(module, _HIDDEN, _ENABLE)


def _rename(module: Module, before: str, after: str) -> None:
    for number, node in of_kind(module.metadata, ""):
        if node.operands[:1] == [MDString(before)]:
            module.metadata[number] = replace(node, operands=[MDString(after), *node.operands[1:]])
