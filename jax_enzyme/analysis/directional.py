"""What differs from one direction to another in a function that is linear in some of its buffers: tangents, cotangents,
and the memory that they lie in.

    lattice     {same, differs} per value and per object, least fixed point
    start       the buffers of which there is one for each direction
    transfer    a load from an object that differs does; what is stored into an object, or copied, makes it so; so do
                operands the results of arithmetic, choices and calls
    pointers    are addresses of the same place in all directions. Objects that one pointer may lead to, and those that
                one copy reads and writes, differ together: there is one way to count bytes in them

Control and integers are the same for all directions: what they depend on is no tangent. Where one would differ after
all it is in `values` like any other, and who asks refuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, copy_operands, is_copy
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument, Value


class Directional:
    """The values and the objects that differ."""

    def __init__(self, points_to: PointsTo, buffers: Iterable[Argument]) -> None:
        self._points_to = points_to
        self.values: set[Value] = set()
        self.objects: set[MemoryObject] = {points_to.objects[b] for b in buffers}
        values = [v for f in points_to.functions for v in [*f.arguments, *f.instructions()]]
        self._work: Worklist[Value] = Worklist(values, self._visit)
        self._work.run()
        self._work.close()

    def leads_there(self, value: Value) -> bool:
        """Whether a pointer, or an integer that holds one, leads to memory that differs."""
        return not T.is_float(value.type) and not self._points_to.of(value).isdisjoint(self.objects)

    def _visit(self, value: Value) -> None:
        if T.is_pointer(value.type):
            self._together(value)
        match value:
            case I.Load():
                if self._together(value.operands[0]) and not T.is_pointer(value.type):
                    self._differs(value)
            case I.Store(operands=[stored, pointer]):
                self._together(pointer, grow=self._read(stored))
            case I.CallBase() if is_copy(value):
                target, source, _ = copy_operands(value)
                self._together(target, source)
            case I.Instruction():
                if any(map(self._read, value.operands)):
                    self._differs(value)
            case _:
                pass

    def _read(self, value: Value) -> bool:
        self._work.read(value)
        return value in self.values

    def _differs(self, value: Value) -> None:
        if value not in self.values:
            self.values.add(value)
            self._work.changed(value)

    def _together(self, *pointers: Value, grow: bool = False) -> bool:
        """Whether the objects that these lead to differ; if one does, or they are to, then all do from now on."""
        reached = {o for pointer in pointers for o in self._points_to.of(pointer)}
        for item in reached:
            self._work.read(item)
        if not grow and reached.isdisjoint(self.objects):
            return False
        for item in reached - self.objects:
            self.objects.add(item)
            self._work.changed(item)
        return True
