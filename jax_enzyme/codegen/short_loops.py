"""Loops of a few iterations, whose number is constant, are to be unrolled before anything is differentiated.

    before    loop:  br i1 %more, label %loop, label %exit                   three iterations
    after     loop:  br i1 %more, label %loop, label %exit, !llvm.loop !7    !7 = distinct !{!7, !8}
                                                                             !8 = !{!"llvm.loop.unroll.full"}

A point in space is an array of three numbers in memory to the compiler until its loops are unrolled; then it is three
values, which need no shadow memory, and of which the tape keeps what is needed. LLVM's own limits are made for code
that runs forward only: a body of ten iterations, once reversed, is long.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock

_ITERATIONS = 4
_INSTRUCTIONS = 200
"""Of all iterations together."""
_EFFORT = 500
"""Questions that lead to how often a loop runs: what is seen to be a small constant at all is seen at once."""
_LOOP = "llvm.loop"


def ask_to_unroll(module: Module) -> Module:
    """A copy of the module in which its innermost short loops are marked; the module itself where there are none."""
    functions = [f for f in module.functions.values() if not f.is_declaration]
    latches = [(f, block) for f in functions for block in _latches(module, f)]
    if not latches:
        return module
    copy = clone(module)
    for function, block in latches:
        _mark(copy, copy.functions[function.name].blocks[function.blocks.index(block)].terminator)
    return copy


def _latches(module: Module, function: Function) -> Iterator[BasicBlock]:
    """The blocks that close short loops."""
    cfg = Cfg(function)
    loops = Loops(cfg, Dominators(cfg))
    recurrences = Recurrences(function, cfg, loops, effort=_EFFORT)
    for loop in loops:
        if loop.children or len(loop.latches) > 1 or len(loop.exits) > 1:
            continue
        body = sum(len(b.instructions) for b in loop.blocks)
        if body > _INSTRUCTIONS or _spoken_of(module, loop.latches[0].terminator):
            continue  # before any time is spent on how often it runs
        again = recurrences.repeats(loop)
        if again is None or not 0 <= again < _ITERATIONS:
            continue
        if (again + 1) * body <= _INSTRUCTIONS:
            yield loop.latches[0]


def _properties(module: Module, branch: Instruction) -> list[MDValue]:
    """What is known of a loop, behind the node's reference to itself."""
    node = dict(branch.metadata).get(_LOOP)
    return module.metadata[node.number].operands[1:] if isinstance(node, MDRef) else []


def _spoken_of(module: Module, branch: Instruction) -> bool:
    """Whether the source says whether to unroll a loop, or it was to be unrolled before."""
    for item in _properties(module, branch):
        node = module.metadata[item.number] if isinstance(item, MDRef) else item
        first = node.operands[0] if isinstance(node, MDNode) and node.operands else None
        if isinstance(first, MDString) and ".loop.unroll." in first.text:
            return True
    return False


def _mark(module: Module, branch: Instruction) -> None:
    number = 1 + max((int(n) for n in module.metadata), default=-1)
    own, wish = MDRef(str(number)), MDRef(str(number + 1))
    module.metadata[own.number] = MDNode(operands=[own, *_properties(module, branch), wish], distinct=True)
    module.metadata[wish.number] = MDNode(operands=[MDString("llvm.loop.unroll.full")])
    branch.metadata = [*((kind, node) for kind, node in branch.metadata if kind != _LOOP), (_LOOP, own)]
