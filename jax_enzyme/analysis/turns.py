"""Memory that values of two kinds use in turn, so that neither is ever read as the other.

    for (k = 0; k < 2 * n; k++) count[k] = k;        integers fill what they read
    ... count[k] ...
    for (k = 0; k < n; k++) a[k] = x[k] * x[k];      numbers in the same memory, which fill what they read as well
    ... a[k] ...

The source says of which type each access is, and C that memory is read as what was stored last. Old programs change the
words of numbers by way of an `int *` all the same, so here it is proved: on no way from a store of the one kind to a
load of the other is there a place that the other kind has not filled in between.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cached_property

from jax_enzyme.analysis.accesses import Access, accesses, clears
from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.extents import room
from jax_enzyme.analysis.filling import Filling, Written, are_all
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.remembered import remembered

_MOST_PLACES = 64
"""Of more places where one object is read it is not asked what they find."""


@dataclass(frozen=True)
class _Kind:
    size: int
    number: bool

    @staticmethod
    def of(part: Bytes) -> _Kind:
        return _Kind(part.size, part.number)


@dataclass(frozen=True, eq=False)
class _Use:
    """An access of one object; of any kind where it is at no known `part`."""

    access: Access
    part: Bytes | None
    kind: _Kind | None


class Turns:
    """Of the functions of one `PointsTo`."""

    def __init__(self, points_to: PointsTo, ranges: ByteRanges) -> None:
        self._points_to, self._ranges = points_to, ranges

    def are_taken(self, item: MemoryObject, one: Bytes, other: Bytes) -> bool:
        """Whether what is at a part of an object is never read as what is at another part, nor the other way round."""
        kinds = _Kind.of(one), _Kind.of(other)
        return not (self._finds(item, *kinds) or self._finds(item, *reversed(kinds)))

    @remembered
    def _finds(self, item: MemoryObject, read: _Kind, written: _Kind) -> bool:
        """Whether a load of one kind may find what a store of another kind has left."""
        uses = self._uses.get(item)
        if uses is None:
            return True
        loads = [use for use in uses if use.kind == read and use.access.reads]
        if len({(self._block(use), use.part) for use in loads}) > _MOST_PLACES:
            return True
        stores = [use for use in uses if use.access.writes]
        others = [use for use in stores if use.kind in (written, None) and not _is_nothing(use, read)]
        own = [use for use in stores if use.kind == read or clears(use.access.instruction)]
        return any(self._is_reached(item, load, others, own) for load in loads)

    def _is_reached(self, item: MemoryObject, load: _Use, others: list[_Use], own: list[_Use]) -> bool:
        """Whether control may come from one of the others to a load, and not through loops that fill what it reads."""
        block = self._block(load)
        found: dict[BasicBlock, list[I.Instruction]] = {}
        for use in others:
            if use.part is None or load.part is None or use.part.meets(load.part):
                found.setdefault(self._block(use), []).append(use.access.instruction)
        if not found:
            return False
        if any(self._loops.precedes(i, load.access.instruction) for i in found.get(block, ())):
            return True
        filled = self._filled(item, load, own, found)

        def before(one: BasicBlock) -> list[BasicBlock]:
            return [b for b in self._facts.cfg.preds[one] if (b, one) not in filled]

        return any(b in found for b in reached(before(block), before))

    def _filled(
        self, item: MemoryObject, load: _Use, own: list[_Use], others: Container[BasicBlock]
    ) -> set[tuple[BasicBlock, BasicBlock]]:
        """The ways into loops, and out of blocks, that have written all that a load reads when they are over. A block
        that others write in as well may do so last."""
        written: dict[tuple[BasicBlock, Loop | None], list[Written]] = {}
        for use in own:
            within, block = self._around(load, use), self._block(use)
            entered = self._entered(item, use, within)
            if entered is not None and not (entered[0] is block and block in others):
                written.setdefault((entered[0], within), []).append(entered[1])
        found = set[tuple[BasicBlock, BasicBlock]]()
        for (outside, within), parts in written.items():
            place = self._read(item, load, within)
            if place is not None and are_all(parts, place[1], place[0]):
                found.update((outside, successor) for successor in outside.successors)
        return found

    def _read(self, item: MemoryObject, load: _Use, within: Loop | None) -> tuple[int, int] | None:
        """The bytes from which a load reads, and the one behind."""
        if (entered := self._entered(item, load, within)) is not None:
            return entered[1].first, entered[1].end
        size = room(self._ranges.layout, item)
        return None if size is None else (0, size)

    def _entered(self, item: MemoryObject, use: _Use, within: Loop | None) -> tuple[BasicBlock, Written] | None:
        access = use.access
        if access.size is None or item.site is None or access.objects != frozenset([item]):
            return None
        return self._filling.entered(access.pointer, access.size, self._block(use), item.site, within)

    def _around(self, one: _Use, other: _Use) -> Loop | None:
        """The innermost loop around both."""
        inner = self._inner(other)
        return next((loop for loop in inner.ancestors if self._block(one) in loop), None) if inner else None

    def _inner(self, use: _Use) -> Loop | None:
        return self._loops.loop_of.get(self._block(use))

    def _block(self, use: _Use) -> BasicBlock:
        return self._facts.block_of[use.access.instruction]

    # -- what there is

    @cached_property
    def _facts(self) -> Recurrences:
        return Recurrences.of(self._points_to.root, self._points_to.module)

    @cached_property
    def _filling(self) -> Filling:
        return Filling(self._points_to.root, self._facts)

    @property
    def _loops(self) -> Loops:
        return self._facts.loops

    @cached_property
    def _uses(self) -> dict[MemoryObject, list[_Use] | None]:
        """The accesses of each object; None of those that other functions than the root access too."""
        found: dict[MemoryObject, list[_Use] | None] = {}
        for function in self._points_to.functions:
            for access in accesses(self._points_to, function, self._ranges.layout):
                for item, part in self._parts(access):
                    if function is not self._points_to.root:
                        found[item] = None
                    elif (known := found.setdefault(item, [])) is not None and not access.kills:
                        known.append(_Use(access, part, None if part is None else _Kind.of(part)))
        return found

    def _parts(self, access: Access) -> Iterator[tuple[MemoryObject, Bytes | None]]:
        instruction = access.instruction
        match instruction:
            case I.Load() | I.Store() | I.AtomicRMW() | I.CmpXchg():
                yield from self._ranges.accessed(instruction)
            case _:
                yield from ((item, None) for item in access.objects)


def _is_nothing(use: _Use, read: _Kind) -> bool:
    """Whether it writes zeros that are the same in both kinds."""
    size = use.access.size
    return clears(use.access.instruction) and (not read.number or (size is not None and size % read.size == 0))
