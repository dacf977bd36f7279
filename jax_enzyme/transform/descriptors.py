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

Members of derived types are described in place. An allocatable array has memory of its own, which the function may
free or exchange: `in` and `inout` ones are allocated, and copies; `out` ones are not allocated before the call. A
pointer leads to the array of the caller; where it leads elsewhere afterwards, the results are copied from there, and
that memory stays the function's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul

from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature.formals import Formal, Plain, Record
from jax_enzyme.signature.model import Order
from jax_enzyme.transform.described import Described, Kind
from jax_enzyme.transform.records import Composer

# Descriptors of flang: version, where the dimensions begin, the codes of types (its ISO_Fortran_binding.h).
VERSION = 20240719
_DIMENSIONS = 24
_DIMENSION_BYTES = 24
_EXTENT, _STEP = 8, 16
_STRUCTURE = 42
_ADDENDUM_BYTES, _HAS_ADDENDUM = 16, 1
_TYPES = {
    "bool": 39, "i8": 7, "i16": 8, "i32": 9, "i64": 10, "u8": 7, "u16": 8, "u32": 9, "u64": 10, "f16": 25, "bf16": 26,
    "f32": 27, "f64": 28, "c64": 34, "c128": 35,
}  # fmt: skip
_WRITTEN = ("out", "inout")


def assumed_shape(composer: Composer, formal: Plain | Record, item: int, extents: Sequence[int], at: Value) -> Value:
    """A descriptor of memory that stays where it is: `item` are the bytes of an element, `extents` begin with the
    dimension that moves fastest."""
    made = composer.slot(_DIMENSIONS + _DIMENSION_BYTES * len(extents))
    code = _TYPES[formal.param.dtype] if isinstance(formal, Plain) else _STRUCTURE
    _describe(composer.at, made, code, item, extents, at, Kind.ASSUMED_SHAPE)
    return made


def object_of_class(composer: Composer, item: int, at: Value, type_: Value) -> Value:
    """A descriptor of one object of so many bytes, with the description of its type behind it."""
    made = composer.slot(_DIMENSIONS + _ADDENDUM_BYTES)
    _describe(composer.at, made, _STRUCTURE, item, (), at, Kind.ASSUMED_SHAPE, extra=_HAS_ADDENDUM)
    composer.at.store(type_, composer.at.offset(made, _DIMENSIONS), 8)
    composer.at.store(const_int(T.I64, 0), composer.at.offset(made, _DIMENSIONS + 8), 8)
    return made


class Exchanged:
    """Arrays whose memory a function may exchange for other memory, in a module and an order of dimensions."""

    def __init__(self, module: Module, order: Order) -> None:
        self._declarations = Declarations(module)
        self._order: Order = order

    def parameter(self, composer: Composer, formal: Plain, known: Described) -> Value:
        """A descriptor of a parameter."""
        made = composer.slot(_DIMENSIONS + _DIMENSION_BYTES * known.rank)
        own = composer.pointer(formal)
        self.put(composer, formal, known, own, made)
        if known.kind is Kind.ALLOCATABLE or formal.param.direction in _WRITTEN:
            composer.afterwards.append(lambda: self.take(composer, formal, known, own, made))
        return made

    def put(self, composer: Composer, formal: Formal, known: Described, own: Value, place: Value) -> None:
        """Describes at `place` the array of the caller at `own`, a copy of it, or none."""
        if not isinstance(formal, Plain):
            dtype = known.dtypes[0]
            nothing = (0,) * known.rank
            _describe(composer.at, place, _TYPES[dtype], ITEM_BYTES[dtype], nothing, ConstantNull(T.PTR), known.kind)
            return
        item, extents = self._form(composer, formal)
        direction = formal.param.direction
        address = own
        if known.kind is Kind.ALLOCATABLE and direction == "out":
            address = ConstantNull(T.PTR)
        elif known.kind is Kind.ALLOCATABLE:
            nbytes = const_int(T.I64, max(item * prod(extents), 1))
            address = self._declarations.memory(composer.at, "malloc", nbytes)
            if direction != "scratch":
                composer.copy(formal, own, address, item)
        _describe(composer.at, place, _TYPES[formal.param.dtype], item, extents, address, known.kind)

    def take(self, composer: Composer, formal: Formal, known: Described, own: Value, place: Value) -> None:
        """Copies results to where they belong, once the function has returned, and frees what is the call's own."""
        now = composer.at.load(T.PTR, place, 8)
        if isinstance(formal, Plain) and formal.param.direction in _WRITTEN:
            item, extents = self._form(composer, formal)
            _check(composer, formal, item, extents, place, now, self._order)
            composer.copy(formal, now, own, item)
        if known.kind is Kind.ALLOCATABLE:
            self._declarations.memory(composer.at, "free", now)

    def _form(self, composer: Composer, formal: Plain) -> tuple[int, list[int]]:
        """The bytes of an element, and the extents, fastest first."""
        dims = formal.own or ()
        return ITEM_BYTES[formal.param.dtype], composer.extents(dims if self._order == "F" else dims[::-1])


def _check(
    composer: Composer, formal: Plain, item: int, extents: Sequence[int], made: Value, address: Value, order: Order
) -> None:
    """What the descriptor says after the call has to be an array like that of the caller, without gaps."""
    at, name = composer.at, formal.param.name
    composer.require(at.icmp("ne", address, ConstantNull(T.PTR)), f"the kernel left `{name}` without memory")
    expected, turned = ", ".join(map(str, extents)), ", ".join(map(str, reversed(extents)))
    hint = f' as Fortran counts; with order="F" the signature means ({turned})'
    hint = hint if order == "C" and len(extents) > 1 else ""
    for axis, (size, step) in enumerate(zip(extents, _steps(item, extents), strict=True)):
        place = at.offset(made, _DIMENSIONS + axis * _DIMENSION_BYTES)
        now = at.load(T.I64, at.offset(place, _EXTENT), 8)
        composer.require(
            at.icmp("eq", now, const_int(T.I64, size)),
            f"the kernel left `{name}` in another shape: dimension {axis + 1} of ({expected}) is another one{hint}",
        )
        if size > 1:
            now = at.load(T.I64, at.offset(place, _STEP), 8)
            composer.require(
                at.icmp("eq", now, const_int(T.I64, step)),
                f"the kernel left `{name}` as a pointer to every so many elements of an array, or to them in reverse",
            )


def _describe(
    at: Builder,
    place: Value,
    code: int,
    item: int,
    extents: Sequence[int],
    address: Value,
    kind: Kind,
    extra: int = 0,
) -> None:
    at.store(address, place, 8)
    at.store(const_int(T.I64, item), at.offset(place, 8), 8)
    at.store(const_int(T.I32, VERSION), at.offset(place, 16), 4)
    for offset, byte in enumerate((len(extents), code, kind.value, extra), 20):
        at.store(const_int(T.I8, byte), at.offset(place, offset), 1)
    for axis, (size, step) in enumerate(zip(extents, _steps(item, extents), strict=True)):
        for offset, value in ((0, 1), (_EXTENT, size), (_STEP, step)):
            dimension = at.offset(place, _DIMENSIONS + _DIMENSION_BYTES * axis + offset)
            at.store(const_int(T.I64, value), dimension, 8)


def _steps(item: int, extents: Sequence[int]) -> list[int]:
    return list(accumulate((item, *extents[:-1]), mul))[: len(extents)]
