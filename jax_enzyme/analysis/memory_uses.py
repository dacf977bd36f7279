"""What one function does to memory: asked by all who prove that it stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, Objects
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.remembered import remembered


class MemoryUses:
    """Of a function as it is now, and not as it may become. `calls` are what it calls, and what that may write."""

    def __init__(
        self, function: Function, points_to: PointsTo, layout: DataLayout, calls: Iterable[Access] = ()
    ) -> None:
        self.points_to = points_to
        self.layout = layout
        self.all = (*accesses(points_to, function, layout), *calls)
        self._number = {access: number for number, access in enumerate(self.all)}
        self._at: dict[I.Instruction, list[Access]] = {}
        for access in self.all:
            self._at.setdefault(access.instruction, []).append(access)

    def at(self, instruction: I.Instruction) -> Sequence[Access]:
        """What an instruction accesses."""
        return self._at.get(instruction, ())

    def touching(self, item: MemoryObject) -> Iterator[Access]:
        """What may access an object."""
        return (a for a in self.all if self.points_to.may_meet(a.objects, (item,)))

    @remembered
    def inside(self, loop: Loop) -> Sequence[Access]:
        """What is accessed in a loop, in the order of the function, in time for that alone."""
        found = (a for block in loop.blocks for i in block.instructions for a in self.at(i))
        return sorted(found, key=self._number.__getitem__)

    def may_be_written(self, objects: Objects, loop: Loop) -> bool:
        """Whether something in a loop may write to one of these objects."""
        return any(a.writes and self.points_to.may_meet(a.objects, objects) for a in self.inside(loop))
