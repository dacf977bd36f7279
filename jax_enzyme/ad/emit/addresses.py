"""Operands that are addresses, how far memory is aligned, how many bytes a call names, and accesses to numbers."""

from __future__ import annotations

from jax_enzyme.ad.facts.copying import ALIGNMENT
from jax_enzyme.analysis.lanes import size
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.tbaa import number_access, shadow_access
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import Value


def address_operands(instruction: I.Instruction) -> range:
    """Which operands an address, or a vector of addresses, is made of: not those that only say which, or how far on."""
    match instruction.opcode:
        case "select":
            return range(1, 3)
        case "insertelement" | "shufflevector" | "insertvalue":
            return range(2)
        case _:
            return range(1)


def holds_address(layout: DataLayout, type_: T.Type) -> bool:
    """Whether a value of the type may be an address or have one in it: a pointer, the integer made of one, a record."""
    return any(T.is_pointer(kind) or kind == T.I64 for kind in layout.kinds(type_))


def element_alignment(type_: T.Type, align: int | None) -> int:
    """The alignment of an access to memory of the derivative's own: that of the elements. More is known only of the
    primal's addresses."""
    match type_:
        case T.VectorType(_, element) | T.ArrayType(_, element):
            natural = element_alignment(element, None)
        case T.StructType(elements):
            natural = min((element_alignment(e, None) for e in elements), default=1)
        case T.FloatType():
            natural = size(type_) or ALIGNMENT
        case T.IntType(bits):
            natural = bits // 8 if bits in (8, 16, 32, 64) else 1
        case _:
            natural = 8
    return natural if align is None else min(natural, align)


def load_number(builder: Builder, type_: T.Type, pointer: Value, align: int | None = None) -> I.Load:
    """Reads memory, and says that it is of numbers where the type is one of them."""
    loaded = builder.load(type_, pointer, align)
    loaded.metadata = number_access(type_)
    return loaded


def store_number(builder: Builder, value: Value, pointer: Value, align: int | None = None) -> None:
    """The same, writing."""
    builder.store(value, pointer, align).metadata = shadow_access(value.type)
