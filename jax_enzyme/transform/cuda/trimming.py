"""Loops over threads of which only some do anything run over those alone.

    before    for (t = 0; t < 128; t++) { if (t < 64) x; }       after    for (t = 0; t < 64; t++) x;
              for (t = 0; t < 128; t++) { if (t == 0) x; }                for (t = 0; t < 1; t++) x;

A reduction in shared memory consists of such loops.
"""

from __future__ import annotations

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.cuda.uniform import speculatable
from jax_enzyme.transform.rewriting import phis


def trim_loops(function: Function) -> None:
    """Changes the loops of an optimised function in place."""
    for loop in Loops.of(function):
        _trim(function, loop)


def _trim(function: Function, loop: Loop) -> None:
    latch, header = loop.latches[0], loop.header
    test = header.terminator
    if len(loop.latches) != 1 or loop.exiting != [latch] or not isinstance(test, I.CondBranch) or latch is header:
        return
    counter = _counter(loop)
    if counter is None or test.targets.count(latch) != 1:
        return
    phi, exit_, count = counter
    busy = _busy(test, phi, latch)
    if busy is None or busy >= count or not _idle(function, loop):
        return
    # The condition stays: it is known to hold where the loop is this short.
    exit_.operands[1] = const_int(exit_.operands[1].type, busy)


def _counter(loop: Loop) -> tuple[I.Phi, I.Compare, int] | None:
    """The only phi of the header, which counts from 0 in steps of 1; the comparison that ends the loop, and the number
    of iterations."""
    found = phis(loop.header)
    branch = loop.latches[0].terminator
    condition = branch.operands[0] if isinstance(branch, I.CondBranch) else None
    if len(found) != 1 or not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return None
    (phi,) = found
    around = loop.ends(phi)
    if around is None or int_value(around[0]) != 0 or step_to(around[1], phi) != 1:
        return None
    count = int_value(condition.operands[1])
    ends = condition.predicate == "eq" and branch.targets[0] not in loop
    continues = condition.predicate in ("ne", "ult") and branch.targets[0] in loop
    if condition.operands[0] is not around[1] or not (ends or continues):
        return None
    return (phi, condition, count) if count is not None and count > 1 else None


def _busy(test: I.CondBranch, phi: I.Phi, latch: BasicBlock) -> int | None:
    """In how many iterations, the first ones, the header goes anywhere but to the latch."""
    condition = test.operands[0]
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp" or condition.operands[0] is not phi:
        return None
    limit = int_value(condition.operands[1])
    if limit is None:
        return None
    works = test.targets[0] is not latch
    match condition.predicate, works:
        case ("ult", True) | ("uge", False):
            busy = limit
        case ("ugt", False) | ("ule", True):
            busy = limit + 1
        case ("eq", True) | ("ne", False) if limit == 0:
            busy = 1
        case _:
            return None
    return busy if busy > 0 else None


def _idle(function: Function, loop: Loop) -> bool:
    """Do header and latch do nothing of their own, and is nothing of the loop used behind it?"""
    latch, header = loop.latches[0], loop.header
    if any(not speculatable(i) for b in (latch, header) for i in b.instructions[:-1]):
        return False
    inside: set[Value] = {i for b in loop.blocks for i in b.instructions}
    return not any(o in inside for b in function.blocks if b not in loop for i in b.instructions for o in i.operands)
