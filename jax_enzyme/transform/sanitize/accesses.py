"""What a function does to memory by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.metadata import MDRef
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.sanitize.lookup import read_record
from jax_enzyme.transform.sanitize.provenance import Known, Place


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


def range_of(at: Builder, place: Place, records: MDRef) -> tuple[Value, Value]:
    """Base and extent of an object."""
    if isinstance(place, Known):
        return at.cast("ptrtoint", place.base, T.I64), const_int(T.I64, place.extent)
    return read_record(at, place.record, records), read_record(at, at.offset(place.record, 8), records)
