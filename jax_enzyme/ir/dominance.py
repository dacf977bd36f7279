"""Which definitions are available at which uses. For the checker; analyses have a richer tree of their own."""

from __future__ import annotations

from jax_enzyme.ir.instructions import CallBr, Instruction, Invoke, Phi
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock


class Dominance:
    """Immediate dominators by iteration to a fixed point over reverse post-order (Cooper, Harvey and Kennedy).

    `position` gives block and index of every instruction of the function."""

    def __init__(self, function: Function) -> None:
        self.position: dict[Instruction, tuple[BasicBlock, int]] = {
            instruction: (block, index)
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }
        self.order = _reverse_postorder(function)
        self.rank = {block: index for index, block in enumerate(self.order)}
        self.parent = self._parents()

    def _parents(self) -> list[int]:
        """The rank of the immediate dominator of each reachable block, the entry its own."""
        predecessors: list[list[int]] = [[] for _ in self.order]
        for index, block in enumerate(self.order):
            for target in block.successors:
                predecessors[self.rank[target]].append(index)
        parent = [-1] * len(self.order)
        parent[0] = 0
        changed = True
        while changed:
            changed = False
            for block in range(1, len(parent)):
                known = [p for p in predecessors[block] if parent[p] >= 0]
                best = known[0]
                for other in known[1:]:
                    best = _meet(parent, best, other)
                if parent[block] != best:
                    parent[block] = best
                    changed = True
        return parent

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


def _meet(parent: list[int], left: int, right: int) -> int:
    while left != right:
        if left > right:
            left = parent[left]
        else:
            right = parent[right]
    return left


def _reverse_postorder(function: Function) -> list[BasicBlock]:
    seen = {function.entry}
    work = [(function.entry, iter(function.entry.successors))]
    order: list[BasicBlock] = []
    while work:
        block, successors = work[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            order.append(block)
            work.pop()
        else:
            seen.add(following)
            work.append((following, iter(following.successors)))
    return order[::-1]
