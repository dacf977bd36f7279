"""Memory that a loop reads and does not write: all iterations find it as it was in front of the loop.

for i: next[i] = f(now[i - 1], now[i], now[i + 1])       two buffers, pointers that change places, levels of one array
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.apart import Apart
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.residues import Place, never_meet
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function


class Unwritten:
    """What is asked of the loads of one function."""

    def __init__(self, recurrences: Recurrences, points_to: PointsTo, layout: DataLayout) -> None:
        self._recurrences = recurrences
        self._points_to = points_to
        self._layout = layout
        self._apart = Apart(points_to, recurrences.block_of)

    def by(self, accesses: Iterable[Access], load: I.Load, loop: Loop) -> bool:
        """Whether none of what a loop accesses writes what a load in it reads, in any iteration."""
        return not any(access.writes and self._may_write(access, load, loop) for access in accesses)

    def _may_write(self, access: Access, load: I.Load, loop: Loop) -> bool:
        pointer, objects = load.operands[0], self._points_to.of(load.operands[0])
        if isinstance(access.pointer, Function):
            return self._points_to.may_meet(access.objects, objects)
        return not self._apart.always(access.pointer, pointer) and self._may_meet(access, load, loop)

    def _may_meet(self, access: Access, load: I.Load, loop: Loop) -> bool:
        block_of, pointer = self._recurrences.block_of, load.operands[0]
        bases = I.base_of(access.pointer), I.base_of(pointer)
        if not any(block_of.get(base) in loop.blocks for base in bases) and self._apart.together(*bases):
            return False
        if access.size is None:
            return True
        written = Place(access.pointer, block_of[access.instruction], access.size)
        read = Place(pointer, block_of[load], self._layout.store_size(load.type))
        return not never_meet(self._recurrences, loop, written, read)
