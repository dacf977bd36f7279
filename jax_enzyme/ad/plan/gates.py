"""What control chooses, as a tree of selects.

    before    br i1 %c, label %then, label %else ... %x = phi double [ %a, %then ], [ %b, %else ]
    choice    Fork(%c, %a, %b)

Loops on the way are walked through where all their exits lead to one choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import BasicBlock, Value

_GATE_BLOCKS = 24
"""What is chosen by more branches is not computed again by the reverse sweep: it is kept."""


@dataclass(frozen=True, eq=False)
class Fork:
    condition: Value
    then: Choice
    other: Choice


Choice = Fork | Value


class GateBuilder:
    """Walks the acyclic region between a block's immediate dominator and the block. `values` are those that the block
    takes, by where control comes from."""

    def __init__(self, code: Instrumented, block: BasicBlock, values: dict[BasicBlock, Value]) -> None:
        self._code = code
        self._block = block
        self._values = values
        self._loop = code.loop_of(block)
        self._seen: dict[BasicBlock, Choice | None] = {}
        self._failed = False

    def build(self, top: BasicBlock) -> Choice | None:
        """The choice among them that control makes from the end of `top`, or None where it is not told so."""
        if self._code.loop_of(top) is not self._loop:
            return None
        tree = self._tree(top)
        return None if self._failed else tree

    def _tree(self, block: BasicBlock) -> Choice | None:
        """The choice that control makes from the end of `block`; None where it does not come to the merge."""
        if block not in self._seen:
            self._seen[block] = None
            self._seen[block] = self._step(block)
        return self._seen[block]

    def _step(self, block: BasicBlock) -> Choice | None:
        last = block.terminator
        match last:
            case I.Branch():
                return self._edge(block, last.targets[0])
            case I.CondBranch():
                then, other = (self._edge(block, t) for t in last.targets)
                if then is None or other is None or then is other:
                    return other if then is None else then
                return Fork(last.operands[0], then, other)
            case I.Return() | I.Unreachable():
                return None
            case _:
                self._failed = True
                return None

    def _edge(self, source: BasicBlock, target: BasicBlock) -> Choice | None:
        if target is self._block:
            return self._values[source]
        cfg = self._code.cfg
        if target not in cfg.index or not cfg.reaches(target, self._block):
            return None
        if self._loop is not None and (target is self._loop.header or target not in self._loop.blocks):
            return None
        loop = self._code.loop_of(target)
        if loop is not None and loop is not self._loop and loop.parent is self._loop:
            return self._through(loop)
        if loop is not self._loop or len(self._seen) > _GATE_BLOCKS:
            self._failed = True
            return None
        return self._tree(target)

    def _through(self, inner: Loop) -> Choice | None:
        """The choice behind a loop on the way, which had an end: all its exits have to lead to the same."""
        ways = [tree for tree in (self._edge(*edge) for edge in inner.exit_edges) if tree is not None]
        if any(tree is not ways[0] for tree in ways):
            self._failed = True
        return ways[0] if ways else None


def leaves(choice: Choice) -> Iterator[Value]:
    """The values and conditions of a choice."""
    if isinstance(choice, Fork):
        yield choice.condition
        yield from leaves(choice.then)
        yield from leaves(choice.other)
    else:
        yield choice
