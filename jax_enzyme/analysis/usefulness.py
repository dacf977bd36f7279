"""What outputs depend on: values, and parts of memory objects.

    store %value, %r;  store %error, %r + 8;  ...  load %r      the value is useful, the error is not

Backward from the outputs: a value needs what it flows from; a load, the bytes that it may read; bytes, what is written
to any of them. Libraries keep numbers beside one another of which their callers ask for some alone: what goes to bytes
that no useful load reads has no part in the derivative, although its object has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from jax_enzyme.analysis.congruence import ANY, Congruence, copied_to, overlap
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, copy_operands, is_copy, is_defined_call
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.remembered import remembered

_MOST = 64
"""Of an object of which so many ranges of bytes are useful, all are."""


@dataclass(frozen=True, slots=True)
class Part:
    """So many bytes of an object, at each of these offsets; ANY: all of it."""

    item: MemoryObject
    at: Congruence = ANY
    size: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class _Write:
    """Bytes that are written (None: how many is not known), of what; or which call copies them."""

    at: Congruence
    size: int | None
    sources: Sequence[Value | Part]
    copy: I.CallBase | None = None


@dataclass(frozen=True, eq=False)
class Usefulness:
    """Filled with what goes where, then asked what outputs depend on."""

    points_to: PointsTo
    layout: DataLayout
    _flows: dict[Value, list[Iterable[Value | Part]]] = field(default_factory=dict[Value, list[Iterable[Value | Part]]])
    _writes: dict[MemoryObject, list[_Write]] = field(default_factory=dict[MemoryObject, list[_Write]])

    def parts(self, pointer: Value, size: int | None) -> list[Part]:
        """So many bytes behind a pointer; None: nobody knows how many."""
        if size is None:
            return [Part(item) for item in self.points_to.of(pointer)]
        return [Part(item, at, size) for item, places in self.points_to.places(pointer).items() for at in places]

    def flows(self, value: Value, sources: Iterable[Value | Part]) -> None:
        """A value is made of these."""
        self._flows.setdefault(value, []).append(sources)

    def writes(self, pointer: Value, size: int | None, sources: Sequence[Value | Part]) -> None:
        """So many bytes (None: nobody knows which) are made of these."""
        for part in self.parts(pointer, size):
            self._writes.setdefault(part.item, []).append(_Write(part.at, size, sources))

    def fills(self, items: Iterable[MemoryObject], sources: Sequence[Value | Part]) -> None:
        """Whatever is in some objects may be made of these."""
        for item in items:
            self._writes.setdefault(item, []).append(_Write(ANY, None, sources))

    def moves(self, instruction: I.Instruction, passes: Callable[[Value], bool] = lambda _: True) -> bool:
        """Notes what an instruction makes that only moves what there is, or writes, and what that depends on: a load, a
        store, an atomic operation, a copy, a call of a function with a body. Whether it is one of these. Of what is
        stored that counts which `passes` something on."""
        size = self.layout.store_size
        match instruction:
            case I.Load(operands=[pointer]):
                self.flows(instruction, self.parts(pointer, size(instruction.type)))
            case I.Store(operands=[value, pointer]):
                self.writes(pointer, size(value.type), (value,) if passes(value) else ())
            case I.AtomicRMW(operands=[pointer, *values]) | I.CmpXchg(operands=[pointer, *values]):
                sources = (*self.parts(pointer, None), *filter(passes, values))
                self.flows(instruction, sources)
                self.writes(pointer, None, sources)
            case I.CallBase(callee=Function() as callee) if is_defined_call(instruction):
                for parameter, argument in zip(callee.arguments, instruction.arguments, strict=False):
                    self.flows(parameter, (argument,))
                self.flows(instruction, self._returned(callee))
            case I.CallBase() if is_copy(instruction):
                self._copies(instruction)
            case _:
                return False
        return True

    @remembered
    def _returned(self, function: Function) -> list[Value]:
        return function.returned()

    def _copies(self, call: I.CallBase) -> None:
        target, _, length = copy_operands(call)
        for part in self.parts(target, length):
            self._writes.setdefault(part.item, []).append(_Write(part.at, length, (), call))

    def of(self, start: Collection[Value | MemoryObject]) -> tuple[set[Value], set[MemoryObject]]:
        """The values and the objects that some depend on."""
        ranges: dict[MemoryObject, int] = {}
        found: Reached[Value | Part] = Reached(
            (Part(item) if isinstance(item, MemoryObject) else item for item in start),
            lambda item: not isinstance(item, Constant),
        )
        whole: set[MemoryObject] = set()
        for item in found:
            if not isinstance(item, Part):
                for sources in self._flows.get(item, ()):
                    found.add(sources)
                continue
            if item.item in whole:
                continue
            ranges[item.item] = ranges.get(item.item, 0) + 1
            part = item if ranges[item.item] <= _MOST else Part(item.item)
            if part.at == ANY:
                whole.add(part.item)
            for write in self._writes.get(part.item, ()):
                if write.size is None or overlap(write.at, write.size, part.at, part.size):
                    found.add(write.sources if write.copy is None else self._copied(write.copy, write.at, part))
        return {v for v in found.all if not isinstance(v, Part)}, {p.item for p in found.all if isinstance(p, Part)}

    def _copied(self, call: I.CallBase, there: Congruence, part: Part) -> Iterable[Part]:
        """Where the bytes of a part come from that a copy has written."""
        _, source, length = copy_operands(call)
        if length is None or part.at == ANY:
            return self.parts(source, None)
        places = self.points_to.places(source).items()
        return [Part(o, copied_to(part.at, part.size, there, at, length), part.size) for o, ats in places for at in ats]
