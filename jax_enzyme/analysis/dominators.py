"""Dominator and post-dominator trees."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir.dominance import immediate_dominators, reverse_post_order
from jax_enzyme.ir.values import BasicBlock


class _Tree:
    """A dominator tree with entry and exit numbers, so that a query takes constant time."""

    def __init__(self, order: Iterable[BasicBlock], parent: dict[BasicBlock, BasicBlock | None]) -> None:
        self.idom = parent
        self.children: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in parent}
        self.roots: list[BasicBlock] = []
        for block in order:
            above = parent[block]
            (self.roots if above is None else self.children[above]).append(block)
        self._enter: dict[BasicBlock, int] = {}
        self._leave: dict[BasicBlock, int] = {}
        clock = 0
        stack = [(block, False) for block in reversed(self.roots)]
        while stack:
            block, done = stack.pop()
            clock += 1
            if done:
                self._leave[block] = clock
                continue
            self._enter[block] = clock
            stack.append((block, True))
            stack.extend((child, False) for child in reversed(self.children[block]))

    def dominates(self, a: BasicBlock, b: BasicBlock) -> bool:
        """Is `a` on every path (to `b` from the entry; for post-dominators from `b` to the exits)? A block dominates
        itself. False where either block is outside the tree."""
        if a not in self._enter or b not in self._enter:
            return False
        return self._enter[a] <= self._enter[b] and self._leave[b] <= self._leave[a]

    def describe(self) -> str:
        """The tree, one block per line, indented by depth."""
        lines: list[str] = []
        stack = [(root, 0) for root in reversed(self.roots)]
        while stack:
            block, depth = stack.pop()
            lines.append("  " * depth + block.name)
            stack.extend((child, depth + 1) for child in reversed(self.children[block]))
        return "\n".join(lines)

    __str__ = describe


class Dominators(_Tree):
    """`idom[block]` for each reachable block; None for the entry."""

    def __init__(self, cfg: Cfg) -> None:
        idom = immediate_dominators(cfg.rpo, cfg.preds.__getitem__)
        parent = {block: None if block is cfg.entry else idom[block] for block in cfg.rpo}
        super().__init__(cfg.rpo, parent)


class PostDominators(_Tree):
    """`idom[block]` is the immediate post-dominator, None where only the end of the function (a virtual exit that joins
    all blocks without successors) comes later on every path.

    A block from which no exit can be reached (an endless loop) is outside the tree and post-dominates nothing.
    """

    def __init__(self, cfg: Cfg) -> None:
        ends = [block for block in cfg.rpo if not cfg.succs[block]]

        def backward(node: BasicBlock | None) -> list[BasicBlock]:
            return ends if node is None else cfg.reachable_preds(node)

        start: BasicBlock | None = None
        order = reverse_post_order(start, backward)

        def preds(node: BasicBlock | None) -> list[BasicBlock | None]:
            if node is None:
                return []
            following: list[BasicBlock | None] = list(cfg.succs[node])
            return following or [None]

        idom = immediate_dominators(order, preds)
        blocks = [block for block in order if block is not None]
        super().__init__(blocks, {block: idom[block] for block in blocks})
