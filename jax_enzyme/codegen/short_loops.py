"""Loops of a few iterations, whose number is constant, are to be unrolled before anything is differentiated.

    before    loop:  br i1 %more, label %loop, label %exit                   three iterations
    after     loop:  br i1 %more, label %loop, label %exit, !llvm.loop !7    !7 = distinct !{!7, !8}
                                                                             !8 = !{!"llvm.loop.unroll.full"}

A point in space is an array of three numbers in memory to the compiler until its loops are unrolled; then it is three
values, which need no shadow memory, and of which the tape keeps what is needed. LLVM's own limits are made for code
that runs forward only: a body of ten iterations, once reversed, is long. Loops over small local arrays are worth more:

    double f[9];
    for (int q = 0; q < 9; q++) f[q] = from[q * size + i];        nine values of one iteration of the loop around, which
    for (int q = 0; q < 9; q++) to[q * size + i] = g(f[q]);       is then the innermost, and can be made vectors
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.local_nests import nests_over_locals
from jax_enzyme.codegen.short_nests import LONG, is_longer, nests_to_unroll
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.transform.loop_hints import ask, is_spoken_of

_ITERATIONS = 4
_INNER_ITERATIONS = 8
"""The same for loops in loops, without branches: what is left may be made vectors of the loop around, as a filter of
five by five."""
_INSTRUCTIONS = 200
"""Of all iterations together, but for what is a constant in each of them."""
_LOCAL_INSTRUCTIONS = 512
_LOCAL_BYTES = 256
"""The same for loops over local arrays of so many bytes at most, in longer loops, that call nothing: calls are better
made in vectors."""
_EFFORT = 500
"""Questions that lead to how often a loop runs: what is seen to be a small constant at all is seen at once."""


def ask_to_unroll(module: Module) -> Module:
    """A copy of the module in which its innermost short loops are marked; the module itself where there are none."""
    functions = [f for f in module.functions.values() if not f.is_declaration]
    latches = [(f, block) for f in functions for block in _latches(module, f)]
    if not latches:
        return module
    copy = clone(module)
    for function, block in latches:
        ask(copy, copy.functions[function.name].blocks[function.blocks.index(block)].terminator)
    return copy


def _latches(module: Module, function: Function) -> Iterator[BasicBlock]:
    """The blocks that close short loops."""
    cfg = Cfg(function)
    loops = Loops(cfg, Dominators(cfg))
    if not loops.all:
        return
    recurrences = Recurrences(function, loops, effort=_EFFORT)
    layout = DataLayout(module)
    short, local = _innermost(module, recurrences, layout)
    nests = nests_over_locals(recurrences, lambda value: _is_small(layout, value), short | local)
    found = dict.fromkeys(nests)
    for loop in loops:
        if loop in short or (loop in local and _leaves_no_loop(recurrences, loop, short | local)):
            found[loop] = None
        found.update(dict.fromkeys(nests_to_unroll(recurrences, layout, loop, short | nests)))
    for loop in found:
        if not is_spoken_of(module, loop.latches[0].terminator):
            yield loop.latches[0]


def _innermost(module: Module, recurrences: Recurrences, layout: DataLayout) -> tuple[set[Loop], set[Loop]]:
    """The innermost loops that are short, and those over local arrays that are short for these."""
    short: set[Loop] = set()
    local: set[Loop] = set()
    for loop in recurrences.loops:
        if loop.children or len(loop.latches) > 1 or len(loop.exits) > 1:
            continue
        body = loop.length
        if body > _LOCAL_INSTRUCTIONS or is_spoken_of(module, loop.latches[0].terminator):
            continue  # before any time is spent on how often it runs
        is_local = _goes_over_locals(layout, loop)
        again = recurrences.repeats(loop) if is_local or body <= _INSTRUCTIONS else None
        if again is None or again < 0:
            continue
        most = _INNER_ITERATIONS if loop.parent is not None and len(loop.blocks) == 1 else _ITERATIONS
        if again < most and body <= _INSTRUCTIONS and (again + 1) * _left(loop) <= _INSTRUCTIONS:
            short.add(loop)
        elif is_local and again < LONG and (again + 1) * body <= _LOCAL_INSTRUCTIONS:
            local.add(loop)
    return short, local


def _left(loop: Loop) -> int:
    """How many instructions of an innermost loop are left in an iteration whose number is a constant: not those that
    compute with it alone, nor choices that it decides, as between the weights of the eight corners of a cell."""
    known: set[Value] = set()
    left = 0
    for instruction in (i for block in loop.blocks for i in block.instructions):
        match instruction:
            case I.Phi():
                ends = loop.ends(instruction)
                is_known = (
                    ends is not None and isinstance(ends[0], Constant) and step_to(ends[1], instruction) is not None
                )
            case I.Select() if instruction.operands[0] in known:
                continue
            case I.BinaryOp() | I.Cast() | I.Compare() | I.Select():
                is_known = all(o in known or isinstance(o, Constant) for o in instruction.operands)
            case _:
                is_known = False
        if is_known:
            known.add(instruction)
        else:
            left += 1
    return left


def _leaves_no_loop(recurrences: Recurrences, loop: Loop, gone: set[Loop]) -> bool:
    """Whether the loop around a loop is a longer one and becomes an innermost one: or else the array stays in memory,
    and nothing is gained."""
    around = loop.parent
    if around is None or not gone.issuperset(around.children):
        return False
    return is_longer(recurrences, around)


def _goes_over_locals(layout: DataLayout, loop: Loop) -> bool:
    """Whether a loop accesses a small local array, at another place in each iteration, and calls nothing."""
    instructions = [i for block in loop.blocks for i in block.instructions]
    if any(isinstance(i, I.CallBase) and not callee_name(i).startswith("llvm.") for i in instructions):
        return False
    pointers = [accessed[0] for i in instructions if (accessed := I.accessed(i)) is not None]
    inside = set(instructions)
    return any(pointer in inside and _is_small(layout, I.base_of(pointer)) for pointer in pointers)


def _is_small(layout: DataLayout, base: Value) -> bool:
    return isinstance(base, I.Alloca) and layout.alloc_size(base.allocated_type) <= _LOCAL_BYTES
