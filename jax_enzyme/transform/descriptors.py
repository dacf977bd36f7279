"""Arrays with their descriptors, as Fortran passes those of assumed shape, allocatable ones and pointers.

    "x: f64[n], out y: f64[m]", n = 4, m = 2            subroutine f(x, y)
                                                          real(8) :: x(:)
                                                          real(8), allocatable :: y(:)

    before    ptr %x, ptr %y
    after     %d = alloca 48                            a descriptor: address, bytes of an element, version,
              store ptr %x, ptr %d                      rank, type, attribute, and each dimension's lower
                                                        bound, extent and step
              %e = alloca 48
              store ptr null, ptr %e
              call void @f(ptr %d, ptr %e)
              %1 = load ptr, ptr %e                     what the kernel allocated must be of two elements
              ...                                       for each element: from %1 to %y
              call void @free(ptr %1)

An allocatable array has memory of its own, which the function may free or exchange: `in` and `inout` ones are
allocated, and copies; `out` ones are not allocated before the call. A pointer leads to the array of the caller; where
it leads elsewhere afterwards, the results are copied from there, and that memory stays the function's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from math import prod
from operator import mul

from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature.formals import Formal, Plain, Record
from jax_enzyme.transform.records import Composer
from jax_enzyme.transform.source_types import plain_type

# Descriptors of flang: version, where the dimensions begin, the codes of types (its ISO_Fortran_binding.h).
_VERSION = 20240719
_DIMENSIONS = 24
_DIMENSION_BYTES = 24
_EXTENT, _STEP = 8, 16
_STRUCTURE = 42
_TYPES = {
    "bool": 39, "i8": 7, "i16": 8, "i32": 9, "i64": 10, "u8": 7, "u16": 8, "u32": 9, "u64": 10, "f16": 25, "bf16": 26,
    "f32": 27, "f64": 28, "c64": 34, "c128": 35,
}  # fmt: skip
_WRITTEN = ("out", "inout")


class Kind(Enum):
    """What the function may do with an array besides reading and writing it. The value is the attribute in the
    descriptor."""

    ASSUMED_SHAPE = 0
    POINTER = 1
    ALLOCATABLE = 2


@dataclass(frozen=True)
class Described:
    """An array that is passed with a descriptor. `length`: of its texts, where the source says one."""

    rank: int
    kind: Kind
    length: int | None

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
    return None if listed is None else Described(len(listed.operands), kind, bits and bits // 8)


def assumed_shape(composer: Composer, formal: Plain | Record, item: int, extents: Sequence[int], at: Value) -> Value:
    """A descriptor of memory that stays where it is: `item` are the bytes of an element, `extents` begin with the
    dimension that moves fastest."""
    return _descriptor(composer, formal, item, extents, at, Kind.ASSUMED_SHAPE)


def exchanged(composer: Composer, module: Module, formal: Plain, extents: Sequence[int], kind: Kind) -> Value:
    """A descriptor of an array whose memory the function may exchange for other memory."""
    declarations = Declarations(module)
    item, direction = ITEM_BYTES[formal.param.dtype], formal.param.direction
    own = composer.pointer(formal)
    address = own
    if kind is Kind.ALLOCATABLE and direction == "out":
        address = ConstantNull(T.PTR)
    elif kind is Kind.ALLOCATABLE:
        address = declarations.memory(composer.at, "malloc", const_int(T.I64, max(item * prod(extents), 1)))
        if direction != "scratch":
            composer.copy(formal, own, address, item)
    made = _descriptor(composer, formal, item, extents, address, kind)

    def take() -> None:
        now = composer.at.load(T.PTR, made, 8)
        if direction in _WRITTEN:
            _check(composer, formal, item, extents, made, now)
            composer.copy(formal, now, own, item)
        if kind is Kind.ALLOCATABLE:
            declarations.memory(composer.at, "free", now)

    if kind is Kind.ALLOCATABLE or direction in _WRITTEN:
        composer.afterwards.append(take)
    return made


def _check(composer: Composer, formal: Plain, item: int, extents: Sequence[int], made: Value, address: Value) -> None:
    """What the descriptor says after the call has to be an array like that of the caller, without gaps."""
    at, name = composer.at, formal.param.name
    composer.require(at.icmp("ne", address, ConstantNull(T.PTR)), f"the kernel left `{name}` without memory")
    expected = ", ".join(map(str, extents))
    for axis, (size, step) in enumerate(zip(extents, _steps(item, extents), strict=True)):
        place = at.offset(made, _DIMENSIONS + axis * _DIMENSION_BYTES)
        now = at.load(T.I64, at.offset(place, _EXTENT), 8)
        composer.require(
            at.icmp("eq", now, const_int(T.I64, size)),
            f"the kernel left `{name}` in another shape: dimension {axis + 1} of ({expected}) is another one",
        )
        if size > 1:
            now = at.load(T.I64, at.offset(place, _STEP), 8)
            composer.require(
                at.icmp("eq", now, const_int(T.I64, step)),
                f"the kernel left `{name}` as a pointer to every so many elements of an array, or to them in reverse",
            )


def _descriptor(
    composer: Composer, formal: Plain | Record, item: int, extents: Sequence[int], address: Value, kind: Kind
) -> Value:
    at = composer.at
    code = _TYPES[formal.param.dtype] if isinstance(formal, Plain) else _STRUCTURE
    made = composer.slot(_DIMENSIONS + _DIMENSION_BYTES * len(extents))
    at.store(address, made, 8)
    at.store(const_int(T.I64, item), at.offset(made, 8), 8)
    at.store(const_int(T.I32, _VERSION), at.offset(made, 16), 4)
    for offset, byte in enumerate((len(extents), code, kind.value, 0), 20):
        at.store(const_int(T.I8, byte), at.offset(made, offset), 1)
    for axis, (size, step) in enumerate(zip(extents, _steps(item, extents), strict=True)):
        for offset, value in ((0, 1), (_EXTENT, size), (_STEP, step)):
            place = at.offset(made, _DIMENSIONS + _DIMENSION_BYTES * axis + offset)
            at.store(const_int(T.I64, value), place, 8)
    return made


def _steps(item: int, extents: Sequence[int]) -> list[int]:
    return list(accumulate((item, *extents[:-1]), mul))
