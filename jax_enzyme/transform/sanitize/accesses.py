"""What a function does to memory by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.metadata import MDRef
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.sanitize.lookup import read_record
from jax_enzyme.transform.sanitize.provenance import Known, Place

_SOMEWHERE = const_int(T.I64, 1 << 40)


@dataclass(frozen=True, eq=False)
class Access:
    """So many bytes at a pointer; `size` is an int where it is known."""

    instruction: I.Instruction
    pointer: Value
    size: int | Value
    writes: bool


def accesses(instructions: Iterable[I.Instruction], layout: DataLayout) -> Iterator[Access]:
    """Everything that instructions do to memory."""
    for i in instructions:
        yield from (Access(i, pointer, size, writes) for pointer, size, writes in direct(i, layout))


def bytes_behind(pointer: Value, size: int, layout: DataLayout) -> tuple[Value, range] | None:
    """The bytes of an access, as those behind the pointer from which its own is computed; None where that is not
    known."""
    start = 0
    while isinstance(pointer, I.GetElementPtr):
        constant, steps = layout.steps(pointer.source_type, pointer.operands[1:])
        if steps:
            return None
        pointer, start = pointer.operands[0], start + constant
    return pointer, range(start, start + size)


def reported(
    at: Builder, pointer: Value, place: Place, layout: DataLayout, records: MDRef
) -> tuple[Value, Value, Value]:
    """Address, base and extent, for what is said of an access. Of a local variable they are others, as far apart: one
    whose address nobody is told may become a register."""
    offset = local_offset(at, pointer, place, layout)
    if offset is None:
        return at.cast("ptrtoint", pointer, T.I64), *range_of(at, place, records)
    assert isinstance(place, Known)
    return at.binary("add", offset, _SOMEWHERE), _SOMEWHERE, const_int(T.I64, place.extent)


def local_offset(at: Builder, pointer: Value, place: Place, layout: DataLayout) -> Value | None:
    """How far behind the start of a local variable a pointer is, said without its address; None for other objects."""
    if not isinstance(place, Known) or not isinstance(place.base, I.Alloca):
        return None
    total: Value = const_int(T.I64, 0)
    while pointer is not place.base:
        if not isinstance(pointer, I.GetElementPtr):
            return None
        constant, steps = layout.steps(pointer.source_type, pointer.operands[1:])
        for index, size in steps:
            if not isinstance(index.type, T.IntType) or index.type.bits > 64:
                return None
            wide = index if index.type == T.I64 else at.cast("sext", index, T.I64)
            total = at.binary("add", total, at.binary("mul", wide, const_int(T.I64, size)))
        total = at.binary("add", total, const_int(T.I64, constant))
        pointer = pointer.operands[0]
    return total


def range_of(at: Builder, place: Place, records: MDRef) -> tuple[Value, Value]:
    """Base and extent of an object."""
    if isinstance(place, Known):
        return at.cast("ptrtoint", place.base, T.I64), const_int(T.I64, place.extent)
    return read_record(at, place.record, records), read_record(at, at.offset(place.record, 8), records)
