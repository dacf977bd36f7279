"""What a function does to memory by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.metadata import MDRef
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.transform.sanitize.lookup import read_record
from jax_enzyme.transform.sanitize.provenance import Known, Place

COPIES = ("llvm.memcpy.", "llvm.memmove.")
SETS = ("llvm.memset.",)


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
        accessed = I.accessed(i)
        match i:
            case _ if accessed is not None:
                yield Access(i, accessed[0], layout.store_size(accessed[1]), not isinstance(i, I.Load))
            case I.Call() if i.callee.name.startswith(COPIES):
                to, source, size = i.arguments[:3]
                known = int_value(size)
                yield Access(i, source, size if known is None else known, False)
                yield Access(i, to, size if known is None else known, True)
            case I.Call() if i.callee.name.startswith(SETS):
                known = int_value(i.arguments[2])
                yield Access(i, i.arguments[0], i.arguments[2] if known is None else known, True)
            case _:
                pass


def range_of(at: Builder, place: Place, records: MDRef) -> tuple[Value, Value]:
    """Base and extent of an object."""
    if isinstance(place, Known):
        return at.cast("ptrtoint", place.base, T.I64), const_int(T.I64, place.extent)
    return read_record(at, place.record, records), read_record(at, at.offset(place.record, 8), records)
