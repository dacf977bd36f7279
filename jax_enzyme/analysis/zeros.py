"""Pointers that are null in every run, or made of null: no program that is right calls them, or reads through one.

    %table = call ptr @calloc(i64 4, i64 8)      (or memory that a memset, a copy of such memory, or nothing has filled)
    %slot = getelementptr ptr, ptr %table, i64 2
    %compare = load ptr, ptr %slot               null
    %member = getelementptr i8, ptr %compare, i64 56
    %called = load ptr, ptr %member              a member of a record at null, as good as null

The map of memory says that no address lies there; a number might still, and numbers may be made into addresses. So
every instruction that may write to the place is looked at, and a copy's source as well. A pointer that is stored there
may be null itself: `p->half = NULL; run(p->half, x)`. To derivatives such a pointer is no memory of unknown origin, and
where a shadow of it is wanted it does as well itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    called_routine,
    is_defined_call,
    is_memory_free,
    is_near_null,
)
from jax_enzyme.analysis.points_to_sets import addresses_within
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import (
    Argument,
    Constant,
    ConstantExpr,
    ConstantInt,
    ConstantString,
    Poison,
    Undef,
    Value,
    is_zero,
)
from jax_enzyme.remembered import remembered
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
"""So many places that were copied are looked at for one pointer: a copy within an object may lead to ever more."""


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
        """Whether a pointer can only be null, made of it, what nobody has written, or loaded through such a pointer."""
        if self._points_to.of(pointer):
            return False
        seen = Reached[Value | _Place]([pointer])
        left = _MOST
        for item in seen:
            sources = self._sources(item) if isinstance(item, _Place) else self._made_of(item)
            if sources is None:
                return False
            left -= sum(isinstance(source, _Place) for source in sources) if isinstance(item, _Place) else 0
            if left < 0:
                return False
            seen.add(sources)
        return True

    def _made_of(self, value: Value) -> Sequence[Value | _Place] | None:
        """What has to be null for a pointer to be; None where that does not help."""
        match value:
            case Poison() | Undef():
                return ()
            case _ if is_near_null(value):
                return ()
            case I.Phi() | I.Select():
                return I.merged(value)
            case I.GetElementPtr() | I.Freeze() | ConstantExpr(opcode="getelementptr"):
                return value.operands[:1]
            case I.Cast(opcode="inttoptr", operands=[number]):
                return addresses_within(number) or None
            case Argument():
                return self._given.get(value)
            case I.Load(operands=[address]) if not self._points_to.of(address):
                return (address,)
            case I.Load(operands=[address]):
                return tuple(self._places(address, self._layout.store_size(value.type))) or None
            case _:
                return None

    @cached_property
    def _given(self) -> Mapping[Value, Sequence[Value]]:
        """What calls pass to the parameters of the functions that the root calls."""
        found: dict[Value, list[Value]] = {}
        for call in (i for i in self._instructions if isinstance(i, I.CallBase)):
            for callee in self._points_to.callees(call):
                for parameter, value in zip(callee.arguments, call.arguments, strict=False):
                    found.setdefault(parameter, []).append(value)
        return found

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
        is_seen = is_defined_call(call) or is_memory_free(call) or effect in _FILLS or called_routine(call) is not None
        return not is_seen and effect not in _WRITES_NOTHING and not self._points_to.callees(call)

    def _places(self, pointer: Value, size: int) -> Iterator[_Place]:
        for item, offsets in self._points_to.within(pointer).items():
            yield from (_Place(item, at, size) for at in offsets)

    @remembered
    def _sources(self, place: _Place) -> Sequence[Value | _Place] | None:
        """The places that are copied to this one, and the pointers that are stored there; None where anything else but
        zeros may be in it."""
        item, site = place.item, place.item.site
        if isinstance(site, GlobalVariable) and item.is_constant:
            return [] if self._is_zero_at(site.initializer, place) else None
        if item in self._reached or not _is_own(item):
            return None
        if isinstance(site, GlobalVariable) and not self._is_zero_at(site.initializer, place):
            return None
        found: list[Value | _Place] = []
        if isinstance(site, I.CallBase) and call_effect(site) is Effect.REALLOCATE:
            found += [_Place(p.item, p.at + place.at, place.size) for p in self._places(site.operands[0], place.size)]
        for write, size, here in self._writes.get(item, ()):
            if _writes_zeros(write) or (size is not None and not overlap(here, size, place.at, place.size)):
                continue
            if isinstance(write, I.Store) and T.is_pointer(write.operands[0].type):
                found.append(write.operands[0])
                continue
            if isinstance(write, I.Store) and _is_no_address(write.operands[0], self._points_to):
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
            call = write.instruction
            if isinstance(call, I.CallBase) and call_effect(call) not in _FILLS and called_routine(call) is None:
                continue
            for item, offsets in self._points_to.within(write.pointer).items():
                found.setdefault(item, []).extend((write.instruction, write.size, at) for at in offsets)
        return found


def _writes_zeros(write: I.Instruction) -> bool:
    return clears(write) or (isinstance(write, I.Store) and _is_nothing(write.operands[0]))


def _is_no_address(value: Value, points_to: PointsTo) -> bool:
    """Whether what is stored is an address only where the bits of one went into it, and none did."""
    short = isinstance(value, ConstantInt) or T.is_float(value.type) or value.type in (T.I1, T.I8, T.I16, T.I32)
    return short and not points_to.of(value)


def _is_nothing(value: Value) -> bool:
    return is_zero(value) or isinstance(value, Undef | Poison)


def _is_own(item: MemoryObject) -> bool:
    """Memory that no code has but what is in the module, unless its address is handed on."""
    site = item.site
    return item.kind in ("heap", "stack") or (
        isinstance(site, GlobalVariable) and bool({"internal", "private"} & set(site.prefix))
    )
