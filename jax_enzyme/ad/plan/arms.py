"""Values of which no iteration has two share a slot of the tape: what the arms of a branch keep.

That is less memory; and in one function LLVM joins such stores behind the arms, into one whose place is chosen, which
its vectoriser does not know, where each arm has a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.remembered import remembered

S = TypeVar("S")


@dataclass(eq=False)
class _Shared(Generic[S]):
    """A slot, and the blocks that keep something there, as a set of bits."""

    slot: S
    blocks: int


class Arms(Generic[S]):
    """The slots of one function that values may share. Sets of blocks are the bits of integers, by their number."""

    def __init__(self, cfg: Cfg) -> None:
        self._cfg = cfg
        self._shared: dict[Hashable, list[_Shared[S]]] = {}
        self._next: dict[Hashable, int] = {}

    def slot(self, loop: Loop, block: BasicBlock, kind: Hashable, make: Callable[[], S]) -> S:
        """A slot for a value of a kind made in `block`, whose innermost loop is `loop`: one in which only blocks keep
        something that no iteration goes through as well, or a new one."""
        met = self._met(loop)[block]
        if met == self._all(loop):
            return make()
        shared = self._shared.setdefault((loop, kind), [])
        # What is in this block's way stays there: each slot is looked at once for each block.
        number = self._next.get((loop, kind, block), 0)
        while number < len(shared) and shared[number].blocks & met:
            number += 1
        self._next[loop, kind, block] = number + 1
        if number == len(shared):
            shared.append(_Shared(make(), 0))
        shared[number].blocks |= 1 << self._cfg.index[block]
        return shared[number].slot

    @remembered
    def _met(self, loop: Loop) -> dict[BasicBlock, int]:
        """For each block of a loop those that an iteration through it may go through, itself among them."""
        order = [block for block in self._cfg.rpo if block in loop.blocks]
        after = {
            block: [b for b in self._cfg.succs[block] if b in loop.blocks and b is not loop.header] for block in order
        }
        before: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in order}
        for block, targets in after.items():
            for target in targets:
                before[target].append(block)
        later, earlier = self._reached(order[::-1], after, before), self._reached(order, before, after)
        return {block: later[block] | earlier[block] for block in order}

    def _reached(
        self,
        order: list[BasicBlock],
        edges: Mapping[BasicBlock, list[BasicBlock]],
        back: Mapping[BasicBlock, list[BasicBlock]],
    ) -> dict[BasicBlock, int]:
        """For each block those that edges lead to from it, itself among them."""

        def evaluate(block: BasicBlock, facts: Mapping[BasicBlock, int]) -> int:
            bits = 1 << self._cfg.index[block]
            for target in edges[block]:
                bits |= facts[target]
            return bits

        return fixpoint(order, back.__getitem__, evaluate, 0)

    @remembered
    def _all(self, loop: Loop) -> int:
        return sum(1 << self._cfg.index[block] for block in self._met(loop))
