"""What a thread notes of the way that it took is the condition of that way.

    before    if (a) { if (b) { done = true; ... } }
                  %done = phi i1 [ true, %then ], [ false, %inner ], [ false, %entry ]
    after         %done = select i1 %a, i1 %b, i1 false

Threads ask for it behind a barrier (`if (done) s[t] = r[t];`). A condition of their numbers is computed again there,
where the phi would be kept for each, and says which of them have something to do (`guarded_loops`).
"""

from __future__ import annotations

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.cuda.uniform import speculatable
from jax_enzyme.transform.rewriting import phis, substitute

_LONGEST = 6
_MOST_COPIED = 16
"""The most branches on a way, and the most instructions that are computed again for one."""

_Step = tuple[Value, bool]
"""A condition, and whether it holds."""


def name_ways(kernel: Function) -> None:
    """Rewrites such phis of the function of one thread, in place."""
    found = {phi: block for block in kernel.blocks for phi in phis(block) if _is_flag(phi)}
    if not found:
        return
    ways = _Ways(kernel)
    changed: dict[Value, Value] = {}
    for phi, block in found.items():
        steps = ways.taken(phi, block)
        if steps is not None and (named := ways.named(block, *steps)) is not None:
            changed[phi] = named
    substitute(kernel, changed)


def _is_flag(phi: I.Phi) -> bool:
    """Whether it is true for one way to its block alone."""
    numbers = [int_value(value) for value in phi.operands]
    return phi.type == T.I1 and None not in numbers and sum(n != 0 for n in numbers) == 1 and len(numbers) > 1


class _Ways:
    def __init__(self, kernel: Function) -> None:
        self._cfg = Cfg(kernel)
        self._dominators = Dominators(self._cfg)
        self._home: dict[Value, BasicBlock] = {i: block for block in kernel.blocks for i in block.instructions}

    def taken(self, phi: I.Phi, block: BasicBlock) -> tuple[BasicBlock, list[_Step]] | None:
        """Where the ways to a phi's block part, and what has to hold from there on for it to be true, in that order."""
        start = self._dominators.idom.get(block)
        if any(self._dominators.dominates(block, source) for source in self._cfg.reachable_preds(block)):
            return None  # which iteration it is
        (source,) = (b for value, b in phi.incoming if int_value(value) != 0)
        steps: list[_Step] = []
        target = block
        while start is not None and len(steps) < _LONGEST:
            branch = source.terminator
            if isinstance(branch, I.CondBranch):
                if branch.targets.count(target) != 1:
                    return None
                steps.append((branch.operands[0], branch.targets[0] is target))
            elif len(branch.targets) != 1:
                return None
            if source is start:
                return start, steps[::-1]
            before = self._cfg.reachable_preds(source)
            if len(before) != 1:
                return None
            source, target = before[0], source
        return None

    def named(self, block: BasicBlock, start: BasicBlock, steps: list[_Step]) -> Value | None:
        """All steps as one condition, at the beginning of a block; None where it takes too much to compute that."""
        at = Builder(BasicBlock())
        made: dict[Value, Value] = {}
        result: Value = const_int(T.I1, 1)
        for condition, holds in reversed(steps):
            again = self._again(at, condition, start, made)
            if again is None:
                return None
            met = again if holds else at.binary("xor", again, const_int(T.I1, 1))
            result = met if int_value(result) is not None else at.select(met, result, const_int(T.I1, 0))
        place = len(phis(block))
        block.instructions[place:place] = at.block.instructions
        return result

    def _again(self, at: Builder, value: Value, start: BasicBlock, made: dict[Value, Value]) -> Value | None:
        """A value at the end of the way."""
        home = self._home.get(value)
        if home is None or value in made or self._dominators.dominates(home, start):
            return made.get(value, value)
        if not isinstance(value, I.Instruction) or isinstance(value, I.Phi) or not speculatable(value):
            return None
        if len(made) == _MOST_COPIED:
            return None
        copy = with_operands(value, [])
        for operand in value.operands:
            part = self._again(at, operand, start, made)
            if part is None:
                return None
            copy.operands.append(part)
        made[value] = at.insert(copy)
        return made[value]
