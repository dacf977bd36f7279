"""The order of a graph's nodes, and which of them each is reached through: for blocks and for anything else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

H = TypeVar("H", bound=Hashable)


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
