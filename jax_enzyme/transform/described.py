"""What debug information says of arrays that Fortran passes, or keeps in derived types, by their descriptors."""

from __future__ import annotations

from enum import Enum

from jax_enzyme.classes import dataclass
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.signature.formals import Formal, Record
from jax_enzyme.transform.source_types import plain_type, source_type


class Kind(Enum):
    """What the function may do with an array besides reading and writing it. The value is the attribute in the
    descriptor."""

    ASSUMED_SHAPE = 0
    POINTER = 1
    ALLOCATABLE = 2


@dataclass(frozen=True)
class Described:
    """An array that has a descriptor. `length`: of its texts, where the source says one; `dtypes`: by which its numbers
    may be declared, the first is their own; none for what is no number."""

    rank: int
    kind: Kind
    length: int | None
    dtypes: tuple[str, ...]

    def beyond(self, formal: Formal) -> str | None:
        """What it is that no array of the caller's can be passed for, or None."""
        if isinstance(formal, Record) and self.kind is not Kind.ASSUMED_SHAPE:
            return "an array of derived type that is allocatable or a pointer"
        return None if self.length in (None, 1) else f"an array of texts of {self.length} characters with a descriptor"


def described(module: Module, value: MDValue | str | None) -> Described | None:
    """What debug information says of an array with a descriptor; None for other types."""
    node = plain_type(module, value)
    if node is None or node.get("tag") != "DW_TAG_array_type" or not node.get("dataLocation"):
        return None
    listed = resolve(module, node.get("elements"))
    kind = Kind.ALLOCATABLE if node.get("allocated") else Kind.POINTER if node.get("associated") else Kind.ASSUMED_SHAPE
    element = plain_type(module, node.get("baseType"))
    bits = element.number("size") if element is not None and element.kind == "DIStringType" else None
    is_number = element is not None and element.kind == "DIBasicType"
    pieces = source_type(module, node.get("baseType")).pieces if is_number else ()
    dtypes = tuple(dtype for piece in pieces for dtype in piece.dtypes)
    return None if listed is None else Described(len(listed.operands), kind, bits and bits // 8, dtypes)
