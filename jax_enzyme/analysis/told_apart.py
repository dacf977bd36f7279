"""What the source takes for a number and for an integer, or for numbers of two sizes, and where that is believed."""

from __future__ import annotations

from functools import cached_property

from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.kept_kinds import KeptKinds
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.turns import Turns
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.remembered import remembered


class ToldApart:
    """Of the functions of one `PointsTo`; in the frames of a derivative no two types share a place, but seem to."""

    def __init__(self, points_to: PointsTo, ranges: ByteRanges, in_frames: bool) -> None:
        self._points_to, self._ranges, self._in_frames = points_to, ranges, in_frames

    def are_apart(self, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        """Whether two parts of an object that may be at one place are never read as one another. Where that they are is
        known: memory is used in turn, or each begins at a place of its own, as what is in a structure does, and the
        shorter one is declared as a member, or both are numbers. Otherwise: of both kinds values may be kept."""
        if part.certainly_meets(other):
            return self._turns.are_taken(item, part, other) or self._begin_apart(item, part, other)
        return self._in_frames or self._is_believed(item, part, other)

    def _begin_apart(self, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        if not part.begins_apart(other):
            return False
        if self._is_member(item, _shorter(part, other)):
            return True
        return part.number and other.number and (self._in_frames or self._are_kept(item, part, other))

    @remembered
    def _is_believed(self, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        is_member = self._is_member(item, _shorter(part, other))
        return is_member or self._are_kept(item, part, other) or self._turns.are_taken(item, part, other)

    def _is_member(self, item: MemoryObject, part: Bytes) -> bool:
        """Whether a part is declared as what it is accessed as: by its access, or with the variable."""
        start = part.start if part.at.modulus else part.at.offset
        if part.member or start is None or start < 0:
            return part.member
        match item.site:
            case I.Alloca(allocated_type=type_) | GlobalVariable(value_type=type_):
                declared = self._ranges.layout.scalar_at(type_, start)
            case _:
                return False
        if declared is None or T.is_float(declared) != part.number:
            return False
        return self._ranges.layout.store_size(declared) == part.size

    def _are_kept(self, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        return self._kinds.are_at(item, part) and self._kinds.are_at(item, other)

    @cached_property
    def _turns(self) -> Turns:
        return Turns(self._points_to, self._ranges)

    @cached_property
    def _kinds(self) -> KeptKinds:
        return KeptKinds(self._points_to, self._ranges)


def _shorter(one: Bytes, other: Bytes) -> Bytes:
    """The integer of two parts, or the shorter number."""
    return min(one, other, key=lambda part: (part.number, part.size))
