"""Marks on loops that no directive is about, in any language: their iterations are proved independent.

    before    br i1 %more, label %loop, label %end          after    br i1 %more, label %loop, label %end, !je.loop !0
                                                                      !0 = !{!"je.exclusive", !"je.parallel"}

Such a loop is shared as one with a directive is, and so is its reverse. The order of sums in the source stays: loops
that add up numbers are not marked.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.independence import Independence
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.marks import Mark, mark, marks_of, note_marks, unmark
from jax_enzyme.ir.values import BasicBlock, int_value
from jax_enzyme.transform.carried_loads import load_again

_WORTH = 2_000_000
"""Instructions. With less to gain the proofs, of each derivative too, are not worth the time that they take."""
_MARKS = frozenset({Mark.PARALLEL, Mark.EXCLUSIVE})


def mark_proved_loops(function: ArrayFunction) -> ArrayFunction:
    """The array function with marks on the outermost loops that take long and are proved independent, in a copy of the
    module; the function itself where there are none."""
    long = _long(function)
    if not long:
        return function
    module, copies = clone_with_map(function.module)
    for loop in long:
        latch = copies[loop.latches[0].terminator]
        assert isinstance(latch, I.Instruction)
        mark(module, latch, _MARKS)
    loaded = load_again(replace(function, module=module))
    if not _keep_proved(loaded):
        return function
    note_marks(loaded.module)
    return loaded


def _facts(function: ArrayFunction) -> Independence:
    return Independence(function.module, function.module.functions[function.symbol])


def _long(function: ArrayFunction) -> list[Loop]:
    """The loops that are worth a proof, and have no marks yet."""
    facts = _facts(function)
    return [
        loop
        for loop in facts.loops.all
        if len(loop.latches) == 1
        and facts.count(loop) is not None
        and facts.work(loop) >= _WORTH
        and not marks_of(function.module, loop.latches[0].terminator)
        and all(source is loop.latches[0] or _fails(source, target) for source, target in loop.exit_edges)
    ]


def _fails(source: BasicBlock, target: BasicBlock) -> bool:
    """Whether the way out of a loop leads to nothing but a status that is not 0: then nobody sees what other iterations
    write. What the iterations after a `break` would write must not be written."""
    seen: set[BasicBlock] = set()
    while target not in seen:
        seen.add(target)
        last = target.terminator
        if isinstance(last, I.Return):
            status = last.operands[0] if last.operands else None
            if isinstance(status, I.Phi) and status in target.instructions:
                status = next((v for v, block in status.incoming if block is source), None)
            return status is not None and int_value(status) not in (None, 0)
        if not isinstance(last, I.Branch):
            return isinstance(last, I.Unreachable)
        source, target = target, last.targets[0]
    return False


def _keep_proved(function: ArrayFunction) -> bool:
    """Takes the marks from loops that have no proof, or lie in one that has; False where none is left."""
    facts = _facts(function)
    proved: list[Loop] = []
    for loop in facts.loops.all:  # outer ones first
        latch = loop.latches[0].terminator
        if len(loop.latches) != 1 or not marks_of(function.module, latch):
            continue
        inside = any(around in proved for around in loop.ancestors)
        if inside or isinstance(facts.examine(loop, False), str):
            unmark(function.module, latch)
        else:
            proved.append(loop)
    return bool(proved)
