"""Addresses in the tape, decoded: the slot that one lies in, and by which numbers that is indexed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.ad.plan.tape import Frame, Slot, Tape
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Value, int_value


@dataclass(frozen=True)
class Place:
    """A decoded address: a slot, whose it is, and what it is indexed by. Values of several blocks may share a slot."""

    slot: Slot
    keys: tuple[object, ...]
    index: Value | None

    @property
    def key(self) -> object:
        return self.keys[0]


class _Slots:
    """The layout of the tape, looked up by offset."""

    def __init__(self, tape: Tape, function: Function) -> None:
        self._function = function
        self._by_frame: dict[Frame, list[tuple[int, int, tuple[object, ...], Slot]]] = {}
        keys: dict[Slot, list[object]] = {}
        for key, slot in tape.slots.items():
            keys.setdefault(slot, []).append(key)
        for slot, own in keys.items():
            place = (slot.offset, slot.offset + slot.size, tuple(own), slot)
            self._by_frame.setdefault(slot.frame, []).append(place)
        for frame, slots in self._by_frame.items():
            slots.sort(key=lambda s: s[:2])
            self._check(frame, slots, tape.node_threads is None)

    def _check(self, frame: Frame, slots: list[tuple[int, int, tuple[object, ...], Slot]], linked: bool) -> None:
        end = 8 if linked and frame.loop is not None and frame.length is None else 0
        for first, after, keys, _ in slots:
            if first < end or after > frame.size:
                raise EmissionError(
                    self._function, f"the slot of {name_of(keys[0])} overlaps another or leaves its frame"
                )
            end = max(end, after)

    def find(self, frame: Frame, offset: int) -> tuple[tuple[object, ...], Slot] | None:
        """The slot at an offset; slots are in order and do not overlap, and only empty ones share their start."""
        slots = self._by_frame.get(frame, [])
        index = bisect_left(slots, offset, key=lambda s: max(s[1] - 1, s[0]))
        return slots[index][2:] if index < len(slots) and slots[index][0] <= offset else None


class Sweep:
    """What the checks of both sweeps share: addresses in the tape."""

    def __init__(self, function: Function, tape: Tape, root: Value) -> None:
        self.function = function
        self.tape = tape
        self.root = root
        self.slots = _Slots(tape, function)
        self.cfg = Cfg(function)
        self.block_of = {i: b for b in self.cfg.rpo for i in b.instructions}
        self.nodes: dict[Value, Loop] = {}
        """What holds the nodes or the row of a loop: a variable, or the result of an allocation."""

    def fail(self, cause: str) -> EmissionError:
        return EmissionError(self.function, cause)

    def stores(self) -> Iterator[I.Store]:
        return (i for i in self.block_of if isinstance(i, I.Store))

    def loads(self) -> Iterator[I.Load]:
        return (i for i in self.block_of if isinstance(i, I.Load))

    def place(self, pointer: Value) -> Place | None:
        """What an address means, where it is one in the tape (and no link from node to node)."""
        steps: list[I.GetElementPtr] = []
        frame = self._frame(pointer)
        while frame is None and isinstance(pointer, I.GetElementPtr):
            steps.append(pointer)
            pointer = pointer.operands[0]
            frame = self._frame(pointer)
        if frame is None:
            return None
        steps.reverse()
        offset = 0
        if steps and steps[0].source_type == T.I8 and (known := int_value(steps[0].operands[1])) is not None:
            offset = known
            steps.pop(0)
        threads = self.tape.threads if frame.loop is None else self.tape.node_threads
        if threads is not None:
            offset, rest = divmod(offset, threads.count)
            if rest:
                raise self.fail("an address in the tape is not that of an item")
        linked = frame.loop is not None and threads is None and frame.length is None
        if linked and offset == 0 and not steps:
            return None
        found = self.slots.find(frame, offset)
        if found is None:
            raise self.fail(f"an address at {offset} of the tape belongs to no slot")
        keys, slot = found
        key = keys[0]
        if isinstance(key, MemoryObject | Snapshot):
            return self._object(slot, key, steps if offset == slot.offset else [])
        indexed = [s for s in steps if s.source_type == T.ArrayType(slot.step, T.I8) and len(s.operands) == 2]
        if offset != slot.offset or len(steps) != len(indexed) or len(steps) != (1 if slot.loops or threads else 0):
            raise self.fail(f"an address in the slot of {name_of(key)} is not that of an item")
        index = indexed[0].operands[1] if indexed else None
        if threads is not None and index is not None:
            try:
                index = threads.item(index)
            except ValueError:
                raise self.fail(f"an address in the slot of {name_of(key)} is not this thread's") from None
        return Place(slot, keys, index)

    def _object(self, slot: Slot, key: MemoryObject | Snapshot, steps: list[I.GetElementPtr]) -> Place:
        """An address in an object or a copy: in that of some iterations, if each has its own."""
        if not slot.loops:
            return Place(slot, (key,), None)
        if not steps or steps[0].source_type != T.ArrayType(slot.step, T.I8):
            raise self.fail(f"an address in the slot of {key} is not that of an item")
        return Place(slot, (key,), steps[0].operands[1])

    def _frame(self, pointer: Value) -> Frame | None:
        if pointer is self.root:
            return self.tape.root
        node: Value | None = pointer
        threads = self.tape.node_threads
        if threads is not None:
            is_row = isinstance(pointer, I.GetElementPtr) and pointer.source_type == T.ArrayType(threads.count, T.I8)
            node = pointer.operands[1] if isinstance(pointer, I.GetElementPtr) and is_row else None
        loop = self._loop_of(node) if node is not None else None
        if loop is not None:
            frame = self.tape.frames[loop]
            return frame if frame.length is None else None
        return self._frame_in_row(pointer) if isinstance(pointer, I.GetElementPtr) else None

    def _loop_of(self, node: Value) -> Loop | None:
        """The loop whose node or row a value is."""
        return self.nodes.get(node.operands[0] if isinstance(node, I.Load) else node)

    def _frame_in_row(self, pointer: I.GetElementPtr) -> Frame | None:
        """The frame that is one of a row: that of the current iteration."""
        loop = self._loop_of(pointer.operands[0])
        if loop is None or self.tape.frames[loop].length is None:
            return None
        of_row = pointer.source_type == self.tape.row_step(loop) and len(pointer.operands) == 2
        if not of_row or not self.is_current(loop, pointer.operands[1]):
            raise self.fail("an address in a row of the tape is not in the frame of the current iteration")
        return self.tape.frames[loop]

    def is_current(self, loop: Loop, number: Value) -> bool:
        """Whether a value is the number of the current iteration of a loop."""
        raise NotImplementedError

    def indices(self, place: Place) -> list[Value]:
        """The parts of an index, by the slot's loops, outermost first."""
        slot = place.slot
        parts = self._parts(place)
        if len(parts) != len(slot.loops):
            return parts
        of = {loop: part for (loop, _), part in zip(slot.loops, parts, strict=True)}
        return [of[loop] for loop in slot.nest]

    def _parts(self, place: Place) -> list[Value]:
        """The same in the order in which they make up the index."""
        packing = place.slot.packing
        if place.index is None:
            return []
        if packing is None:
            return self._box(place, place.index, [bound for _, bound in place.slot.loops[1:]], None)
        index, last = place.index, list[Value]()
        if packing.beside:
            index, *last = self._box(place, index, [packing.beside], None)
        start, within = self._sum(place, index)
        before: list[Value] = []
        if packing.around:
            product, start = self._sum(place, start)
            before = self._box(place, self._factor(place, product, packing.one, None), packing.around[1:], None)
        divider = _entry(start, packing.starts)
        if divider is None:
            raise self._is_not_of_loops(place)
        return [*before, divider, *self._box(place, within, packing.sides, divider), *last]

    def _box(
        self, place: Place, index: Value, sides: Sequence[int | GlobalVariable], divider: Value | None
    ) -> list[Value]:
        """The numbers that make up that of an item in a box, given its sides but the first; a table has those of each
        iteration of the divider."""
        parts: list[Value] = []
        for side in reversed(sides):
            product, part = self._sum(place, index)
            parts.append(part)
            index = self._factor(place, product, side, divider)
        return [index, *reversed(parts)]

    def _sum(self, place: Place, value: Value) -> tuple[Value, Value]:
        if not isinstance(value, I.BinaryOp) or value.opcode != "add":
            raise self._is_not_of_loops(place)
        return value.operands[0], value.operands[1]

    def _factor(self, place: Place, product: Value, side: int | GlobalVariable, divider: Value | None) -> Value:
        """What a side is multiplied with."""
        if not isinstance(product, I.BinaryOp) or product.opcode != "mul":
            raise self._is_not_of_loops(place)
        number, by = product.operands
        if int_value(by) != side if isinstance(side, int) else _entry(by, side) is not divider:
            raise self._is_not_of_loops(place)
        return number

    def _is_not_of_loops(self, place: Place) -> EmissionError:
        return self.fail(f"the index of {name_of(place.key)} is not that of an array of its loops")


def _entry(value: Value, table: GlobalVariable) -> Value | None:
    """Which entry of a table a value is."""
    address = value.operands[0] if isinstance(value, I.Load) else None
    if not isinstance(address, I.GetElementPtr) or len(address.operands) != 2 or address.source_type != T.I64:
        return None
    return address.operands[1] if address.operands[0] is table else None


def name_of(key: object) -> str:
    return f"%{key.name}" if isinstance(key, Value) else str(key)
