"""The one data-flow solver.

Two doors to the same worklist:

`fixpoint` solves a system of equations `fact[n] = evaluate(n, facts)` over any kind of node. `solve` states the usual
problem over the blocks of a function (join over the incoming edges, then transfer through the block) as such a system.

**Lattice contract.** Facts are immutable values with `==`. `bottom` is the least fact ("nothing flows here yet") and an
identity of `join`; `join` is associative, commutative and idempotent; `transfer`, `edge` and `evaluate` are monotone:
larger inputs give no smaller results. Every chain of growing facts is finite, or `evaluate` widens. Then the result is
the least fixed point, the order of visits does not matter, and the solver ends. A must-problem is the same with the
order turned over: `bottom` is the full set, `join` the intersection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from jax_enzyme.ir.values import BasicBlock

if TYPE_CHECKING:
    from jax_enzyme.analysis.cfg import Cfg

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


@dataclass(frozen=True)
class Problem(Generic[F]):
    """A data-flow problem over blocks; see the module's lattice contract.

    `boundary` is the fact at the function's entry (forward) or at the end of every block without successors (backward).
    `transfer(block, fact)` carries a fact through a block in the direction of flow. `edge(source, target, fact)`, where
    given, carries a fact along the control-flow edge source -> target (both named in the direction of *control*, for
    backward problems too): the place for what phis and branch conditions do.
    """

    direction: Literal["forward", "backward"]
    bottom: F
    boundary: F
    join: Callable[[F, F], F]
    transfer: Callable[[BasicBlock, F], F]
    edge: Callable[[BasicBlock, BasicBlock, F], F] | None = None


@dataclass(frozen=True)
class Solution(Generic[F]):
    """The facts at the start (`entry`) and at the end (`exit`) of every reachable block, whatever the direction."""

    entry: dict[BasicBlock, F]
    exit: dict[BasicBlock, F]


def solve(cfg: Cfg, problem: Problem[F]) -> Solution[F]:
    """The least solution of a problem over the reachable blocks."""
    forward = problem.direction == "forward"
    order = cfg.rpo if forward else list(reversed(cfg.rpo))
    sources, dependents = (cfg.preds, cfg.succs) if forward else (cfg.succs, cfg.preds)

    def meet(block: BasicBlock, facts: Mapping[BasicBlock, F]) -> F:
        at_boundary = block is cfg.entry if forward else not cfg.succs[block]
        fact = problem.boundary if at_boundary else problem.bottom
        for other in sources[block]:
            if other not in facts:
                continue
            incoming = facts[other]
            if problem.edge is not None:
                incoming = problem.edge(other, block, incoming) if forward else problem.edge(block, other, incoming)
            fact = problem.join(fact, incoming)
        return fact

    after = fixpoint(
        order,
        lambda block: dependents[block],
        lambda block, facts: problem.transfer(block, meet(block, facts)),
        problem.bottom,
    )
    before = {block: meet(block, after) for block in order}
    return Solution(before, after) if forward else Solution(after, before)
