"""The usual problem over the blocks of a function: join over the incoming edges, then transfer through the block.

**Lattice contract**, beside that of `fixpoint`: `bottom` is an identity of `join`, which is associative, commutative
and idempotent; `transfer` and `edge` are monotone. A must-problem is the same with the order turned over: `bottom` is
the full set, `join` the intersection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.ir.values import BasicBlock

F = TypeVar("F")


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
