"""Memory that a loop reads and does not write: all iterations find it as it was in front of the loop.

for i: next[i] = f(now[i - 1], now[i], now[i + 1])       two buffers, pointers that change places, levels of one array
"""

from __future__ import annotations

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.apart import Apart
from jax_enzyme.analysis.later_writes import LaterWrites
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function


class Unwritten:
    """What is asked of the accesses of one function."""

    def __init__(self, recurrences: Recurrences, memory: MemoryUses) -> None:
        self._block_of = recurrences.block_of
        self._later = LaterWrites(recurrences, memory.layout)
        self._memory = memory
        self._points_to = memory.points_to
        self._apart = Apart(memory.points_to, recurrences.block_of)

    def stays(self, load: I.Load, loop: Loop) -> bool:
        """Whether nothing in a loop writes what a load in it reads, in any iteration."""
        (read,) = self._memory.at(load)
        return all(self.are_apart(a, read, loop) for a in self._memory.inside(loop) if a.writes)

    def are_apart(self, access: Access, other: Access, loop: Loop) -> bool:
        """Whether two accesses in a loop, the second one by a load or a store, touch different memory, whatever
        iterations they are made in, while the loops around are in one."""
        if isinstance(access.pointer, Function):
            return not self._points_to.may_meet(access.objects, other.objects)
        if self._apart.always(access.pointer, other.pointer):
            return True
        bases = I.base_of(access.pointer), I.base_of(other.pointer)
        if not any(self._block_of.get(base) in loop.blocks for base in bases) and self._apart.together(*bases):
            return True
        return self._later.never_meet(access, other, loop)
