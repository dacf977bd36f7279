"""Which definitions are available at which uses. For the checker; analyses have a richer tree of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from jax_enzyme.ir.instructions import CallBr, Instruction, Invoke, Phi
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock

H = TypeVar("H", bound=Hashable)


class Dominance:
    """`position` gives block and index of every instruction of the function."""

    def __init__(self, function: Function) -> None:
        self.position: dict[Instruction, tuple[BasicBlock, int]] = {
            instruction: (block, index)
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }
        self.order = reverse_post_order(function.entry, lambda block: block.successors)
        self.rank = {block: index for index, block in enumerate(self.order)}
        predecessors: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in self.order}
        for block in self.order:
            for target in block.successors:
                predecessors[target].append(block)
        above = immediate_dominators(self.order, predecessors.__getitem__)
        self.parent = [self.rank[above[block]] for block in self.order]
        """The rank of the immediate dominator of each reachable block, the entry its own."""

    def dominates(self, above: BasicBlock, below: BasicBlock) -> bool:
        """True for a block and itself, and for an unreachable `below`."""
        at = self.rank.get(below)
        if at is None:
            return True
        wanted = self.rank.get(above)
        if wanted is None:
            return False
        while at > wanted:
            at = self.parent[at]
        return at == wanted

    def available(self, value: Instruction, user: Instruction, operand: int) -> bool:
        """Is the value defined wherever the user reads it? A phi reads at the end of the block it comes from."""
        block, index = self.position[user]
        if isinstance(user, Phi):
            block, index = user.targets[operand], len(user.targets[operand].instructions)
        home, defined = self.position[value]
        if block not in self.rank:
            return True
        if isinstance(value, Invoke | CallBr):
            return self._after_edge(home, value.targets[0], block)
        if home is block:
            return defined < index
        return self.dominates(home, block)

    def _after_edge(self, source: BasicBlock, target: BasicBlock, block: BasicBlock) -> bool:
        """Does every path to the block take the edge? The target may have other ways in only from below itself."""
        if source not in self.rank or not self.dominates(target, block):
            return False
        for other in self.order:
            for successor in other.successors:
                if successor is target and other is not source and not self.dominates(target, other):
                    return False
        return source.successors.count(target) == 1


def reverse_post_order(root: H, succs: Callable[[H], Iterable[H]]) -> list[H]:
    """The nodes reachable from `root`, each before its successors except along retreating edges. Not recursive."""
    order: list[H] = []
    seen = {root}
    stack = [(root, iter(succs(root)))]
    while stack:
        node, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(succs(successor))))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def immediate_dominators(rpo: Sequence[H], preds: Callable[[H], Iterable[H]]) -> dict[H, H]:
    """Each node's immediate dominator, the root's being itself, by the iteration of Cooper, Harvey and Kennedy ("A
    simple, fast dominance algorithm"). `rpo` starts with the root and holds only nodes that it reaches; `preds` may
    name others, which are ignored."""
    number = {node: i for i, node in enumerate(rpo)}
    idom = [-1] * len(rpo)
    idom[0] = 0

    def intersect(a: int, b: int) -> int:
        while a != b:
            if a > b:
                a = idom[a]
            else:
                b = idom[b]
        return a

    sources = [[number[p] for p in preds(node) if p in number] for node in rpo]
    changed = True
    while changed:
        changed = False
        for node in range(1, len(rpo)):
            best = -1
            for pred in sources[node]:
                if idom[pred] >= 0:
                    best = pred if best < 0 else intersect(best, pred)
            if best != idom[node]:
                idom[node] = best
                changed = True
    return {node: rpo[idom[i]] for i, node in enumerate(rpo)}
