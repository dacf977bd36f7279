"""The end of a marked loop's last iteration lies where all iterations end again.

    before    %up = icmp ugt i64 %i, 199                     after    %up = icmp ugt i64 %i, 199
              br i1 %up, label %high, label %low                      br i1 %up, label %high, label %low
            high: ... br label %latch                               high: ... br label %latch
            low: ...                                                low: ... br label %latch
              %done = icmp eq i64 %i, 0
              br i1 %done, label %exit, label %latch
            latch:                                                  latch:
              %next = add i64 %i, -1                                  %next = add i64 %i, -1
              br label %loop                                          %done = icmp eq i64 %i, 0
                                                                      br i1 %done, label %exit, label %loop

LLVM threads jumps: where a condition on the counter says that an iteration is not the last one, it does not ask. How
often the loop runs is then known no more, and threads cannot share it.
"""

from __future__ import annotations

from jax_enzyme.analysis.folding import compared
from jax_enzyme.analysis.guards import Condition
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, int_value
from jax_enzyme.transform.rewriting import on_copy, phis

_PLAIN = (I.Phi, I.BinaryOp, I.Cast, I.Compare, I.GetElementPtr)


def join_latches(function: ArrayFunction) -> ArrayFunction:
    """The array function with such loops mended, in a copy of the module; the function itself where it has none."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _mend) if _threaded(function.module, root) else function


def _threaded(module: Module, root: Function) -> list[BasicBlock]:
    return [b for b in root.blocks if isinstance(b.terminator, I.Branch) and marks_of(module, b.terminator)]


def _mend(module: Module, root: Function) -> bool:
    """Mends such loops, in place; whether there are any."""
    facts, threaded = Recurrences.of(root, module), _threaded(module, root)
    found = [loop for loop in facts.loops.all if len(loop.latches) == 1 and loop.latches[0] in threaded]
    pairs = [(loop, test) for loop in found for test in loop.exiting if _ends(facts, loop, test)]
    for loop, test in pairs:
        _join(loop, test)
    return bool(pairs)


def _ends(facts: Recurrences, loop: Loop, test: BasicBlock) -> bool:
    """Is a block where the last iteration, and no other, leaves a loop, right in front of the block in which the others
    go on?"""
    latch, branch = loop.latches[0], test.terminator
    if not isinstance(branch, I.CondBranch) or latch not in branch.targets or len(loop.exit_edges) != 1:
        return False
    asked = branch.operands[0]
    if not isinstance(asked, I.Compare) or asked.predicate not in ("eq", "ne"):
        return False
    counter, last = asked.operands[0], int_value(asked.operands[1])
    if (asked.predicate == "eq") is (branch.targets[0] is latch) or last is None or counter not in phis(loop.header):
        return False
    if any(not isinstance(i, _PLAIN) for i in latch.instructions[:-1]):
        return False
    assert isinstance(counter, I.Phi)

    def differs(source: BasicBlock, target: BasicBlock, seen: frozenset[BasicBlock]) -> bool:
        """Is the counter another number wherever control goes this way?"""
        if source is test:
            return target is latch
        if any(_contradicts(c, counter, last) for c in facts.guards.on_edge(source, target)):
            return True
        if source is loop.header or source in seen:
            return False
        return all(differs(p, source, seen | {source}) for p in facts.cfg.preds[source])

    if not all(differs(p, latch, frozenset()) for p in facts.cfg.preds[latch]):
        return False
    # What is used behind the loop is there in every iteration.
    dominators = facts.loops.dominators
    outside = (i for b in facts.cfg.rpo if b not in loop for i in b.instructions)
    left = {facts.block_of[o] for i in outside for o in i.operands if facts.block_of.get(o) in loop.blocks}
    return all(dominators.dominates(block, latch) for block in left)


def _contradicts(condition: Condition, counter: I.Phi, last: int) -> bool:
    """Does what a branch has asked about the counter not hold for a number?"""
    limit = int_value(condition.y)
    if condition.x is not counter or limit is None:
        return False
    assert isinstance(counter.type, T.IntType)
    return not compared(condition.predicate, last, limit, counter.type.bits)


def _join(loop: Loop, test: BasicBlock) -> None:
    latch, branch = loop.latches[0], test.terminator
    asked, back = branch.operands[0], latch.terminator
    leaving = next(t for t in branch.targets if t is not latch)
    assert isinstance(asked, I.Compare)
    test.instructions.pop()
    Builder(test).br(latch)
    latch.instructions.pop()
    at = Builder(latch)
    at.cond_br(at.icmp("eq", *asked.operands), leaving, loop.header)
    latch.terminator.metadata = back.metadata
    for phi in phis(leaving):
        phi.targets = [latch if b is test else b for b in phi.targets]
