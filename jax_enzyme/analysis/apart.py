"""Pointers that change places but never lead to the same memory at the same time.

    %from = select i1 %odd, ptr %v, ptr %u          %from = phi ptr [ %u, %entry ], [ %to, %loop ]
    %to   = select i1 %odd, ptr %u, ptr %v          %to   = phi ptr [ %v, %entry ], [ %from, %loop ]

Each of the two leads to either object; at any time they lead to different ones. A value means what it was when it was
last computed: selects of one condition were made for the same value of it, phis of one block on the same edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import BasicBlock, Value

_DEPTH = 8


@dataclass(frozen=True)
class Apart:
    """What is asked about the pointers of one function; `block_of` has the blocks of its instructions."""

    points_to: PointsTo
    block_of: Mapping[Value, BasicBlock]

    def always(self, a: Value, b: Value) -> bool:
        """Whether two pointers never lead to the same object, whenever each was computed."""
        objects = self.points_to.of(a), self.points_to.of(b)
        known = all(objects) and self.points_to.unknown not in objects[0] | objects[1]
        return known and objects[0].isdisjoint(objects[1])

    def together(self, a: Value, b: Value) -> bool:
        """Whether two pointers that are at hand at one place lead to different objects."""
        return self._together(a, b, frozenset(), _DEPTH)

    def _together(self, a: Value, b: Value, assumed: frozenset[frozenset[Value]], depth: int) -> bool:
        a, b = I.base_of(a), I.base_of(b)
        pair = frozenset((a, b))
        if self.always(a, b) or pair in assumed:
            return True
        if a is b or depth == 0:
            return False
        match a, b:
            case I.Select(), I.Select() if a.operands[0] is b.operands[0]:
                pairs = list(zip(a.operands[1:], b.operands[1:], strict=True))
            case I.Phi(), I.Phi() if self.block_of.get(a, a) is self.block_of.get(b, b):
                other = {block: value for value, block in b.incoming}
                pairs = [(value, other[block]) for value, block in a.incoming]
                assumed |= {pair}
            case _:
                return False
        return all(self._together(x, y, assumed, depth - 1) for x, y in pairs)
