"""Pointers that are null in every run, since nothing but zeros is written where they are read from.

    %table = call ptr @calloc(i64 4, i64 8)      (or memory that a memset, a copy of such memory, or nothing has filled)
    %slot = getelementptr ptr, ptr %table, i64 2
    %compare = load ptr, ptr %slot               null
    %member = getelementptr i8, ptr %compare, i64 56
    %called = load ptr, ptr %member              a member of a record at null, as good as null

The map of memory says that no address lies there; a number might still, and numbers may be made into addresses. So
every instruction that may write to the place is looked at, and a copy's source as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from jax_enzyme.analysis.accesses import accesses, clears, closure
from jax_enzyme.analysis.congruence import Congruence, overlap
from jax_enzyme.analysis.layout import DataLayout, leaves
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import (
    NOTHING,
    MemoryObject,
    Objects,
    call_effect,
    is_defined_call,
    is_memory_free,
    is_near_null,
)
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, ConstantString, Poison, Undef, Value, is_zero
from jax_enzyme.rules.effects import Effect

_WRITES_NOTHING = frozenset(
    {
        Effect.PURE_INT, Effect.IGNORED, Effect.SAME_POINTER, Effect.STACK, Effect.ALLOCATE, Effect.REALLOCATE,
        Effect.FREE, Effect.ABORT, Effect.TRAP, Effect.MASKED_LOAD, Effect.GATHER, Effect.VECTOR_REDUCE,
        Effect.BARRIER, Effect.FENCE, Effect.VOTE, Effect.SHUFFLE,
    }
)  # fmt: skip
"""What leaves the memory alone that was there before."""
_FILLS = (Effect.MEMORY_COPY, Effect.MEMORY_SET)
_MOST = 64
"""So many places are looked at for one pointer: a copy within an object may lead to ever more."""


@dataclass(frozen=True)
class _Place:
    """So many bytes of an object."""

    item: MemoryObject
    at: Congruence
    size: int


class Zeros:
    """Answers for the functions that a map of memory has."""

    def __init__(self, points_to: PointsTo) -> None:
        self._points_to = points_to
        self._layout = DataLayout(points_to.module)
        self._instructions = list(points_to.instructions())

    def is_null(self, pointer: Value) -> bool:
        """Whether a pointer that leads to no object, as far as the map says, is null wherever it is called, or would
        be read through one that is: no program that is right calls it."""
        if is_near_null(pointer):
            return True
        if not isinstance(pointer, I.Load):
            return False
        if not self._points_to.of(pointer.operands[0]):
            return self.is_null(I.base_of(pointer.operands[0]))
        seen = Reached(self._places(pointer.operands[0], self._layout.store_size(pointer.type)))
        for place in seen:
            sources = self._sources(place)
            if sources is None or len(seen) > _MOST:
                return False
            seen.add(sources)
        return len(seen) > 0

    @cached_property
    def _reached(self) -> Objects:
        """What code may write to that is not seen."""
        calls = [i for i in self._instructions if isinstance(i, I.CallBase) and self._is_open(i)]
        if not calls:
            return NOTHING
        shared = [o for o in self._points_to.objects.values() if not o.is_constant and not _is_own(o)]
        given = [o for c in calls for a in c.arguments for o in self._points_to.of(a)]
        return closure(self._points_to, [*shared, *given, self._points_to.caller, self._points_to.unknown])

    def _is_open(self, call: I.CallBase) -> bool:
        """Whether a call may write what is not seen."""
        effect = call_effect(call)
        is_seen = is_defined_call(call) or is_memory_free(call) or effect in _FILLS
        return not is_seen and effect not in _WRITES_NOTHING and not self._points_to.callees(call)

    def _places(self, pointer: Value, size: int) -> Iterator[_Place]:
        for item, offsets in self._points_to.within(pointer).items():
            yield from (_Place(item, at, size) for at in offsets)

    def _sources(self, place: _Place) -> list[_Place] | None:
        """The places that are copied to this one; None where anything but zeros may be in it."""
        item, site = place.item, place.item.site
        if isinstance(site, GlobalVariable) and item.is_constant:
            return [] if self._is_zero_at(site.initializer, place) else None
        if item in self._reached or not _is_own(item):
            return None
        if isinstance(site, GlobalVariable) and not self._is_zero_at(site.initializer, place):
            return None
        found: list[_Place] = []
        if isinstance(site, I.CallBase) and call_effect(site) is Effect.REALLOCATE:
            found += [_Place(p.item, p.at + place.at, place.size) for p in self._places(site.operands[0], place.size)]
        for write, size, here in self._writes.get(item, ()):
            if _writes_zeros(write) or (size is not None and not overlap(here, size, place.at, place.size)):
                continue
            if not isinstance(write, I.CallBase) or call_effect(write) is not Effect.MEMORY_COPY:
                return None
            moved = place.at - here
            sources = [_Place(p.item, p.at + moved, place.size) for p in self._places(write.operands[1], place.size)]
            if not sources:
                return None
            found += sources
        return found

    def _is_zero_at(self, value: Constant | None, place: _Place) -> bool:
        """Whether a constant has no bit set at a place of the object that starts with it."""
        if value is None or _is_nothing(value):
            return value is not None
        return not any(
            overlap(Congruence(at, 0), size, place.at, place.size)
            for start, leaf in leaves(self._layout, value)
            for at, size in self._filled(start, leaf)
        )

    def _filled(self, at: int, leaf: Constant) -> Iterator[tuple[int, int]]:
        """Where bits of a constant are set, in bytes: of a text, as which Rust writes what is in front of the functions
        in a table, byte by byte."""
        if isinstance(leaf, ConstantString):
            yield from ((at + offset, 1) for offset, byte in enumerate(leaf.data) if byte)
        elif not _is_nothing(leaf):
            yield at, self._layout.store_size(leaf.type)

    @cached_property
    def _writes(self) -> dict[MemoryObject, list[tuple[I.Instruction, int | None, Congruence]]]:
        """What is written to each object by code that is seen, how many bytes (None: any number), and where."""
        found: dict[MemoryObject, list[tuple[I.Instruction, int | None, Congruence]]] = {}
        every = (a for f in self._points_to.functions for a in accesses(self._points_to, f, self._layout) if a.writes)
        for write in every:
            if isinstance(write.instruction, I.CallBase) and call_effect(write.instruction) not in _FILLS:
                continue
            for item, offsets in self._points_to.within(write.pointer).items():
                found.setdefault(item, []).extend((write.instruction, write.size, at) for at in offsets)
        return found


def _writes_zeros(write: I.Instruction) -> bool:
    return clears(write) or (isinstance(write, I.Store) and _is_nothing(write.operands[0]))


def _is_nothing(value: Value) -> bool:
    return is_zero(value) or isinstance(value, Undef | Poison)


def _is_own(item: MemoryObject) -> bool:
    """Memory that no code has but what is in the module, unless its address is handed on."""
    site = item.site
    return item.kind in ("heap", "stack") or (
        isinstance(site, GlobalVariable) and bool({"internal", "private"} & set(site.prefix))
    )
