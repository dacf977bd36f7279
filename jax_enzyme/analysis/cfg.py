"""The control-flow graph of a function: predecessors, successors, order, reachability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.ir.dominance import reverse_post_order
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock


class Cfg:
    """A snapshot: make a new one after changing a function's blocks or terminators.

    `preds` and `succs` have an entry for every block of the function, without repeats; successors in the order of the
    terminator, predecessors in the order of the function's blocks. `rpo` is the reverse post-order of the blocks that
    can be reached from the entry, `index` the position in it (unreachable blocks have none).
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.entry = function.entry
        self.succs: dict[BasicBlock, list[BasicBlock]] = {}
        self.preds: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in function.blocks}
        for block in function.blocks:
            self.succs[block] = list(dict.fromkeys(block.successors))
            for successor in self.succs[block]:
                self.preds[successor].append(block)
        self.rpo = reverse_post_order(self.entry, self.succs.__getitem__)
        self.index = {block: i for i, block in enumerate(self.rpo)}

    def is_reachable(self, block: BasicBlock) -> bool:
        """Can control come to the block from the function's entry?"""
        return block in self.index

    def reachable_preds(self, block: BasicBlock) -> list[BasicBlock]:
        """The predecessors that control can come from."""
        return [pred for pred in self.preds[block] if pred in self.index]

    @cached_property
    def _reach(self) -> dict[BasicBlock, int]:
        """For each reachable block, the set (bits by `index`) of the blocks that one or more edges lead to."""

        def evaluate(block: BasicBlock, facts: Mapping[BasicBlock, int]) -> int:
            bits = 0
            for successor in self.succs[block]:
                bits |= facts[successor] | (1 << self.index[successor])
            return bits

        return fixpoint(list(reversed(self.rpo)), self.preds.__getitem__, evaluate, 0)

    def reaches(self, a: BasicBlock, b: BasicBlock) -> bool:
        """Can control get from the end of `a` to the start of `b`, through one or more edges?

        A block reaches itself only if it is on a cycle. Unreachable blocks reach nothing and are reached by nothing.
        """
        return a in self.index and b in self.index and bool(self._reach[a] >> self.index[b] & 1)

    def set_of(self, blocks: Iterable[BasicBlock]) -> int:
        """A set of reachable blocks, as bits."""
        return sum(1 << self.index[block] for block in set(blocks) if block in self.index)

    def reaches_any(self, a: BasicBlock, blocks: int) -> bool:
        """The same as `reaches`, of any block of a set."""
        return a in self.index and bool(self._reach[a] & blocks)

    def describe(self) -> str:
        """One line per block: `block: preds -> succs`, reachable ones in reverse post-order, then the others."""
        rest = [block for block in self.function.blocks if block not in self.index]
        return "\n".join(
            f"{block.name}: [{_names(self.preds[block])}] -> [{_names(self.succs[block])}]"
            + ("" if block in self.index else " unreachable")
            for block in (*self.rpo, *rest)
        )

    __str__ = describe


def _names(blocks: list[BasicBlock]) -> str:
    return ", ".join(block.name for block in blocks)
