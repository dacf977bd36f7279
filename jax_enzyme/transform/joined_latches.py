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

LLVM threads jumps: where a condition on the counter says that an iteration is not the last one, it does not ask. Or it
asks the same at the end of each way through an iteration, where one has a `continue`. How often the loop runs is then
known no more, and threads cannot share it.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.joined_tails import may_run_again
from jax_enzyme.transform.rewriting import on_copy, phis


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
    pairs = [(loop, tests) for loop in found if (tests := _ends(facts, loop))]
    for loop, tests in pairs:
        _join(loop, tests)
    return bool(pairs)


def _ends(facts: Recurrences, loop: Loop) -> list[BasicBlock]:
    """The blocks where the last iteration, and no other, leaves a loop, right in front of the block in which the others
    go on; all ask the same. Empty where iterations end otherwise."""
    latch, tests = loop.latches[0], loop.exiting
    if len(loop.exits) != 1 or len({_asked(test, latch) for test in tests}) != 1:
        return []
    if not loop.blocks.issuperset(facts.cfg.preds[loop.exits[0]]):
        return []
    asked = _asked(tests[0], latch)
    if asked is None or not all(map(may_run_again, latch.instructions[len(phis(latch)) : -1])):
        return []
    dominators = facts.loops.dominators

    def at_latch(value: Value) -> bool:
        block = facts.block_of.get(value)
        return block is None or dominators.dominates(block, latch)

    if not all(at_latch(value) for value in asked[1:3] if isinstance(value, Value)):
        return []
    others = [p for p in facts.cfg.preds[latch] if p not in tests]
    if others and (len(tests) > 1 or not _is_asked_elsewhere(facts, loop, asked, others)):
        return []
    # What is used behind the loop is there in every iteration, or was left by each of its ends.
    joined = [] if others else phis(loop.exits[0])
    outside = (i for b in facts.cfg.rpo if b not in loop for i in b.instructions if i not in joined)
    left = (o for i in outside for o in i.operands if facts.block_of.get(o) in loop.blocks)
    return tests if all(map(at_latch, left)) else []


def _asked(test: BasicBlock, latch: BasicBlock) -> tuple[str, Value | int, Value | int, bool] | None:
    """What a block compares before it goes on to the latch, and whether it does so where that holds."""
    branch = test.terminator
    if not isinstance(branch, I.CondBranch) or branch.targets.count(latch) != 1:
        return None
    asked = branch.operands[0]
    if not isinstance(asked, I.Compare) or not isinstance(asked.operands[0].type, T.IntType):
        return None
    x, y = (v if (number := int_value(v)) is None else number for v in asked.operands)
    return asked.predicate, x, y, branch.targets[0] is latch


def _is_asked_elsewhere(
    facts: Recurrences, loop: Loop, asked: tuple[str, Value | int, Value | int, bool], others: list[BasicBlock]
) -> bool:
    """Is it certain that an iteration is not the last one that comes to the latch from elsewhere?"""
    predicate, counter, last, goes_on = asked
    if predicate not in ("eq", "ne") or (predicate == "eq") is goes_on:
        return False
    if not isinstance(last, int) or not isinstance(counter, I.Phi) or counter not in phis(loop.header):
        return False

    def may_be_last(target: BasicBlock, sources: Iterable[BasicBlock]) -> list[BasicBlock]:
        """From which of some blocks control may go to another one while the counter is the last number."""
        edges = ((source, facts.guards.on_edge(source, target)) for source in sources)
        return [source for source, asked in edges if not any(_contradicts(c, counter, last) for c in asked)]

    def before(block: BasicBlock) -> Iterable[BasicBlock]:
        return () if block is loop.header else may_be_last(block, facts.cfg.preds[block])

    return loop.header not in reached(may_be_last(loop.latches[0], others), before)


def _contradicts(condition: Condition, counter: I.Phi, last: int) -> bool:
    """Does what a branch has asked about the counter not hold for a number?"""
    limit = int_value(condition.y)
    if condition.x is not counter or limit is None:
        return False
    assert isinstance(counter.type, T.IntType)
    return not compared(condition.predicate, last, limit, counter.type.bits)


def _join(loop: Loop, tests: list[BasicBlock]) -> None:
    latch, (leaving,), branch = loop.latches[0], loop.exits, tests[0].terminator
    asked, back, stays = branch.operands[0], latch.terminator, branch.targets[0] is latch
    assert isinstance(asked, I.Compare)
    for phi in phis(leaving):
        values = dict((block, value) for value, block in phi.incoming)
        left = values[tests[0]]
        if any(value is not left for value in values.values()):
            left = I.Phi(phi.type, "phi", list(values.values()), targets=list(values))
            latch.instructions.insert(0, left)
        phi.incoming = [(left, latch)]
    for test in tests:
        test.instructions.pop()
        Builder(test).br(latch)
    latch.instructions.pop()
    at = Builder(latch)
    again = at.icmp(asked.predicate, *asked.operands)
    at.cond_br(again, *((loop.header, leaving) if stays else (leaving, loop.header)))
    latch.terminator.metadata = back.metadata
