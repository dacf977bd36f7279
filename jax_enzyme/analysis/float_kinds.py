"""The floating-point types that each memory object holds."""

from __future__ import annotations

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, called_routine
from jax_enzyme.analysis.words import DTYPES, Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.values import Argument, Value


class FloatKinds:
    """Which floating-point types each memory object holds: declared for buffers, seen in accesses for the rest. `words`
    knows at which places."""

    def __init__(self, points_to: PointsTo, buffers: dict[Argument, Buffer]) -> None:
        self.words = Words(points_to, buffers)
        self._kinds: dict[MemoryObject, set[T.FloatType]] = {}
        self._copies: list[tuple[frozenset[MemoryObject], frozenset[MemoryObject]]] = []
        for argument, buffer in buffers.items():
            kind = DTYPES.get(buffer.dtype)
            item = points_to.objects.get(argument)
            if kind is not None and item is not None:
                self._kinds.setdefault(item, set()).add(kind)
        for function in points_to.functions:
            for instruction in function.instructions():
                self._see(points_to, instruction)
        changed = True
        while changed:
            changed = False
            for a, b in self._copies:
                both = set().union(*(self._kinds.get(o, set()) for o in a | b))
                for item in a | b:
                    if not both <= self._kinds.setdefault(item, set()):
                        self._kinds[item] |= both
                        changed = True

    def of(self, item: MemoryObject) -> frozenset[T.FloatType]:
        return frozenset(self._kinds.get(item, ()))

    def _see(self, points_to: PointsTo, instruction: I.Instruction) -> None:
        if isinstance(instruction, I.Load):
            self._note(points_to, instruction.operands[0], instruction.type)
        elif isinstance(instruction, I.Store):
            self._note(points_to, instruction.operands[1], instruction.operands[0].type)
        elif isinstance(instruction, I.CallBase) and (routine := called_routine(instruction)) is not None:
            for index in routine.floats:
                self._note(points_to, instruction.operands[index], routine.scalar)
        elif isinstance(instruction, I.CallBase) and len(instruction.operands) > 3:
            a, b = (points_to.of(v) for v in instruction.operands[:2])
            name = instruction.callee.name
            if a and b and ("memcpy" in name or "memmove" in name):
                self._copies.append((a, b))

    def _note(self, points_to: PointsTo, pointer: Value, type_: T.Type) -> None:
        kind = T.scalar(type_)
        if isinstance(kind, T.FloatType):
            for item in points_to.of(pointer):
                self._kinds.setdefault(item, set()).add(kind)
