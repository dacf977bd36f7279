"""What the reverse sweep of a function has to do: which blocks and loops it visits, and how adjoints are kept."""

from __future__ import annotations

from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.plan.late_sums import late_sums
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.spent import spent_writes, updates
from jax_enzyme.ad.plan.turned import turned_loops
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value


class Work:
    """Which blocks and loops the reverse sweep has to visit, what it adds to memory behind its loops, which of them it
    goes through from the first iteration on, and after which writes it leaves a shadow as it is."""

    def __init__(self, recipes: Recipes, facts: Facts, words: Words) -> None:
        code = self.code = recipes.code
        self.facts = facts
        self.blocks = {b for b in code.cfg.rpo if any(map(facts.has_adjoint, b.instructions))}
        self.within_block = _used_within_block(code.function)
        self.inert = {loop for loop in code.loops if self.blocks.isdisjoint(loop.blocks)}
        self.late_sums = late_sums(recipes, facts, words, self.inert)
        self.turned = turned_loops(recipes, facts)
        self.spent = spent_writes(recipes, facts)
        self.updates = updates(recipes, facts, self.late_sums)

    def active_phis(self, block: BasicBlock) -> list[I.Phi]:
        return [i for i in block.instructions if isinstance(i, I.Phi) and self.facts.has_adjoint(i)]

    def shortcut(self, block: BasicBlock) -> BasicBlock | None:
        """An earlier block to which reverse can go from `block` directly, since nothing between them has a reverse."""
        if self.active_phis(block):
            return None
        cfg, loop_of = self.code.cfg, self.code.loop_of
        target = self.code.dominators.idom[block]
        if target is None:
            return None
        left = self.code.left(target, block)
        if left and all(loop in self.inert for loop in left):
            target = left[-1].preheader
            assert target is not None
        if loop_of(target) is not loop_of(block):
            return None
        between = reached(cfg.preds[block], cfg.preds.__getitem__, lambda b: b not in (target, block))
        return None if any(b in self.blocks for b in between) else target


def _used_within_block(function: Function) -> frozenset[Value]:
    """The values that only instructions of their own block use; terminators and phis pass a value on."""
    home: dict[Value, BasicBlock] = {i: block for block in function.blocks for i in block.instructions}
    found = set[Value](home)
    for instruction, block in home.items():
        assert isinstance(instruction, I.Instruction)
        passes = isinstance(instruction, I.Phi) or instruction.is_terminator
        found.difference_update(v for v in instruction.operands if passes or home.get(v) is not block)
    return frozenset(found)
