"""Loops over threads of which only some do anything run over those alone.

    before    for (t = 0; t < 128; t++) { if (t < 64) x; }       after    for (t = 0; t < 64; t++) x;
              for (t = 0; t < 128; t++) { if (t == 0) x; }                for (t = 0; t < 1; t++) x;

A reduction in shared memory consists of such loops.
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, int_value
from jax_enzyme.transform.cuda.guarded_loops import counted, is_idle, side


def trim_loops(function: Function) -> None:
    """Changes the loops of an optimised function in place."""
    for loop in Loops.of(function):
        _trim(function, loop)


def _trim(function: Function, loop: Loop) -> None:
    latch, header = loop.latches[0], loop.header
    test = header.terminator
    counts = counted(loop)
    if counts is None or not isinstance(test, I.CondBranch) or latch is header or test.targets.count(latch) != 1:
        return
    busy = _busy(loop, test, counts.phi, latch)
    if busy is None or busy >= counts.count or not is_idle(function, loop):
        return
    # The condition stays: it is known to hold where the loop is this short.
    counts.exit.operands[1] = const_int(counts.exit.operands[1].type, busy)


def _busy(loop: Loop, test: I.CondBranch, phi: I.Phi, latch: BasicBlock) -> int | None:
    """In how many iterations, the first ones, the header goes anywhere but to the latch."""
    condition = test.operands[0]
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return None
    found = side(loop, phi, condition, test.targets[0] is not latch)
    limit = None if found is None or found.offset is not None else int_value(found.limit[0])
    if found is None or limit is None:
        return None
    busy = {"lt": limit, "le": limit + 1, "eq": int(limit == 0)}.get(found.order, 0)
    return busy if busy > 0 else None
