"""Whether two accesses of one function touch a byte in common: asked here, whoever asks.

    for i: next[i] = f(now[i - 1], now[i], now[i + 1])     two buffers, pointers that change places, levels of an array

It is answered by what the two pointers lead to (`memory`), by what they were chosen for, and by the distance of the two
addresses: in one run of a block, in all iterations of a loop (`never_meet`), or of what comes later (`later`).

Pointers that change places never lead to the same memory at the same time:

    %from = select i1 %odd, ptr %v, ptr %u          %from = phi ptr [ %u, %entry ], [ %to, %loop ]
    %to   = select i1 %odd, ptr %u, ptr %v          %to   = phi ptr [ %v, %entry ], [ %from, %loop ]

Each of the two leads to either object; at any time they lead to different ones. A value means what it was when it was
last computed: selects of one condition were made for the same value of it, phis of one block on the same edge.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.guards import Condition
from jax_enzyme.analysis.later_writes import LaterWrites
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.polynomials import Polynomial, TooComplex
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value

_DEPTH = 8
_NO_WRAP = Interval(-(1 << 62), 1 << 62)


class Alias:
    """What is asked of one function."""

    def __init__(self, facts: Recurrences, memory: MemoryUses) -> None:
        self.later = LaterWrites(facts, memory.layout)
        self._facts = facts
        self._memory = memory
        self._points_to = memory.points_to

    def stays(self, load: I.Load, loop: Loop) -> bool:
        """Whether nothing in a loop writes what a load in it reads, in any iteration."""
        (read,) = self._memory.at(load)
        return all(self.never_meet(a, read, loop) for a in self._memory.inside(loop) if a.writes)

    def finds(self, load: I.Load, loop: Loop) -> bool:
        """Whether a load in a loop reads what was there when the loop was entered: what writes there comes behind."""
        (read,) = self._memory.at(load)
        return all(self.comes_behind(a, read, loop) for a in self._memory.inside(loop) if a.writes)

    def comes_behind(self, write: Access, read: Access, loop: Loop) -> bool:
        """Whether no run of a write in a loop touches what a later run of a load in it reads, while the loops around
        are in one iteration."""
        if self.never_meet(write, read, loop):
            return True
        return not isinstance(write.pointer, Function) and self.later.is_read_first(read, write, loop)

    def never_meet(self, access: Access, other: Access, loop: Loop) -> bool:
        """Whether two accesses in a loop, the second one by a load or a store, touch different memory, whatever
        iterations they are made in, while the loops around are in one."""
        if isinstance(access.pointer, Function):
            return not self._points_to.may_meet(access.objects, other.objects)
        if self._lead_apart(access.pointer, other.pointer):
            return True
        bases = I.base_of(access.pointer), I.base_of(other.pointer)
        if not any(self._facts.block_of.get(base) in loop.blocks for base in bases) and self.together(*bases):
            return True
        return self.later.never_meet(access, other, loop)

    def miss_in_one_run(self, access: Access, own: Access, block: BasicBlock) -> bool:
        """Whether an access of a block never touches the place of another one in the same run of the block."""
        if access.size is None or own.size is None or access.kills:
            return False
        if self.together(access.pointer, own.pointer):
            return True
        try:
            place = self._facts.form_at(own.pointer, block).polynomial
            return self.keeps_off(access, place, own.size, self._facts.guards.at(block))
        except TooComplex:
            return False

    def keeps_off(self, access: Access, place: Polynomial, size: int, known: Iterable[Condition] = ()) -> bool:
        """Whether an access touches none of so many bytes at a place, where what is `known` holds. TooComplex where
        nobody knows where it is."""
        if access.size is None:
            return False
        there = self._facts.form_at(access.pointer, self._facts.block_of[access.instruction]).polynomial
        distance = self._facts.bounds(there - place, known)
        return distance.within(_NO_WRAP) and (distance.low >= size or distance.high + access.size <= 0)

    def together(self, a: Value, b: Value) -> bool:
        """Whether two pointers that are at hand at one place lead to different objects."""
        return self._together(a, b, frozenset(), _DEPTH)

    def _lead_apart(self, a: Value, b: Value) -> bool:
        """Whether two pointers never lead to the same object, whenever each was computed."""
        objects = self._points_to.of(a), self._points_to.of(b)
        return all(objects) and not self._points_to.may_meet(*objects)

    def _together(self, a: Value, b: Value, assumed: frozenset[frozenset[Value]], depth: int) -> bool:
        a, b = I.base_of(a), I.base_of(b)
        pair = frozenset((a, b))
        if self._lead_apart(a, b) or pair in assumed:
            return True
        if a is b or depth == 0:
            return False
        block_of = self._facts.block_of
        match a, b:
            case I.Select(), I.Select() if a.operands[0] is b.operands[0]:
                pairs = list(zip(a.operands[1:], b.operands[1:], strict=True))
            case I.Phi(), I.Phi() if block_of.get(a, a) is block_of.get(b, b):
                other = {block: value for value, block in b.incoming}
                pairs = [(value, other[block]) for value, block in a.incoming]
                assumed |= {pair}
            case _:
                return False
        return all(self._together(x, y, assumed, depth - 1) for x, y in pairs)
