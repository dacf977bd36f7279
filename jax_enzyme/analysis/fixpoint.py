"""The one solver of systems of equations `fact[n] = evaluate(n, facts)`, over any kind of node.

**Lattice contract.** Facts are immutable values with `==`, `bottom` is the least of them ("nothing flows here yet"),
and `evaluate` is monotone: larger facts give no smaller results. Every chain of growing facts is finite, or `evaluate`
widens. Then the result is the least fixed point, the order of visits does not matter, and the solver ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

N = TypeVar("N")
F = TypeVar("F")


def fixpoint(
    nodes: Sequence[N],
    dependents: Callable[[N], Iterable[N]],
    evaluate: Callable[[N, Mapping[N, F]], F],
    bottom: F,
) -> dict[N, F]:
    """Solves `fact[n] = evaluate(n, facts)` for every node.

    `nodes` gives the order in which pending nodes are visited (sources of facts first is fast); `dependents(n)` are the
    nodes whose equations read `fact[n]`; those that are not in `nodes` are ignored.
    """
    position = {node: i for i, node in enumerate(nodes)}
    facts = dict.fromkeys(nodes, bottom)
    heap = list(range(len(nodes)))
    pending = set(heap)
    while heap:
        index = heapq.heappop(heap)
        pending.discard(index)
        node = nodes[index]
        fact = evaluate(node, facts)
        if fact == facts[node]:
            continue
        facts[node] = fact
        for dependent in dependents(node):
            other = position.get(dependent)
            if other is not None and other not in pending:
                pending.add(other)
                heapq.heappush(heap, other)
    return facts
