"""Sizes and offsets of types in memory, for the data layout that the CPU and NVPTX targets share.

Pointers are 8 bytes; integers and floats are aligned to their size, up to 16 bytes; `x86_fp80` takes 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantExpr, ConstantSplat, GlobalValue, Value, int_value

Moves = tuple[int, list[tuple[Value, int]]]
"""A number, and values each times another."""


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True, eq=False)
class DataLayout:
    """Answers for the types of one module (named structures have their bodies there)."""

    module: Module
    _structures: dict[T.StructType, tuple[list[int], int, int]] = field(default_factory=dict, init=False, repr=False)

    def is_sized(self, type_: T.Type) -> bool:
        """Is a type none that another module completes, as those of Open MPI's handles?"""
        return not isinstance(type_, T.NamedStructType) or self.module.struct_bodies.get(type_.name) is not None

    def body(self, type_: T.Type) -> T.Type:
        """A named structure's body, any other type itself."""
        if isinstance(type_, T.NamedStructType):
            body = self.module.struct_bodies.get(type_.name)
            if body is None:
                raise ValueError(f"type {type_} is opaque: it has no size")
            return body
        return type_

    def store_size(self, type_: T.Type) -> int:
        """Bytes that a store of the type writes."""
        match self.body(type_):
            case T.IntType(bits):
                return (bits + 7) // 8
            case T.FloatType() as number:
                return number.size
            case T.PointerType():
                return 8
            case T.VectorType(count, element, _):
                if isinstance(element, T.IntType) and element.bits < 8:
                    return (count * element.bits + 7) // 8
                return count * self.store_size(element)
            case T.ArrayType(count, element):
                return count * self.alloc_size(element)
            case T.StructType() as structure:
                return self._struct(structure)[1]
            case other:
                raise ValueError(f"type {other} has no size")

    def alignment(self, access: I.Load | I.Store) -> int:
        """What the address of an access is a multiple of."""
        return access.align or self.align(I.accessed_value(access).type)

    def align(self, type_: T.Type) -> int:
        """ABI alignment in bytes."""
        match self.body(type_):
            case T.ArrayType(_, element):
                return self.align(element)
            case T.StructType() as structure:
                return self._struct(structure)[2]
            case other:
                size = 1 << max(self.store_size(other) - 1, 0).bit_length()
                return min(size, 64 if isinstance(other, T.VectorType) else 16)

    def alloc_size(self, type_: T.Type) -> int:
        """Distance between neighbours in an array."""
        return _round_up(self.store_size(type_), self.align(type_))

    def offsets(self, type_: T.Type) -> list[int]:
        """Byte offsets of the elements of a structure, array or vector."""
        body = self.body(type_)
        if isinstance(body, T.ArrayType | T.VectorType):
            step = self.alloc_size(body.element)
            return [i * step for i in range(body.count)]
        assert isinstance(body, T.StructType)
        return self._struct(body)[0]

    def parts(self, type_: T.Type) -> list[tuple[int, T.Type]]:
        """The members of a structure, or the elements of an array, each with its offset; none of other types."""
        match self.body(type_):
            case T.StructType(elements) as body:
                return list(zip(self._struct(body)[0], elements, strict=True))
            case T.ArrayType(count, element) as body:
                return list(zip(self.offsets(body), [element] * count, strict=True))
            case _:
                return []

    def kinds(self, type_: T.Type) -> list[T.Type]:
        """The types of what structures and arrays hold, each once; of others these."""

        def inside(kind: T.Type) -> Iterable[T.Type]:
            inner = kind.elements if isinstance(kind, T.StructType) else ()
            return map(self.body, (kind.element,) if isinstance(kind, T.ArrayType) else inner)

        return [k for k in reached([self.body(type_)], inside) if not isinstance(k, T.StructType | T.ArrayType)]

    def scalars(self, type_: T.Type, start: int = 0) -> Iterator[tuple[int, T.Type]]:
        """The numbers, integers and pointers in a value of the type, each with its offset."""
        match self.body(type_):
            case T.StructType() | T.ArrayType() as body:
                for offset, part in self.parts(body):
                    yield from self.scalars(part, start + offset)
            case T.VectorType(_, element, False) as vector:
                yield from ((start + offset, element) for offset in self.offsets(vector))
            case body:
                yield start, T.scalar(body)

    def scalar_at(self, type_: T.Type, offset: int) -> T.Type | None:
        """The scalar of a type that starts at an offset; None where none does."""
        body = self.body(type_)
        match body:
            case T.StructType():
                within = [(at, part) for at, part in self.parts(body) if at <= offset]
                return self.scalar_at(within[-1][1], offset - within[-1][0]) if within else None
            case T.VectorType(count, element, False) | T.ArrayType(count, element):
                index, rest = divmod(offset, max(self.alloc_size(element), 1))
                return self.scalar_at(element, rest) if index < count else None
            case _:
                return T.scalar(body) if offset == 0 else None

    def is_integer_member(self, type_: T.Type, offset: int) -> bool:
        """Whether an integer starts at an offset that is a member, and no element of an array, of a structure that has
        other members as well."""
        body, is_among_others = self.body(type_), False
        while isinstance(body, T.StructType):
            within = [(at, part) for at, part in self.parts(body) if at <= offset]
            if not within:
                return False
            is_among_others |= not all(map(T.is_int, body.elements))
            start, part = within[-1]
            body, offset = self.body(part), offset - start
        return T.is_int(body) and offset == 0 and is_among_others

    def steps(self, source: T.Type, indices: Sequence[Value]) -> Moves:
        """What the indices of a `getelementptr` add: bytes, and each index that is no constant so many times.

        Raises ValueError where a type has no size, or a vector of indices chooses the members of a structure."""
        constant, steps = 0, list[tuple[Value, int]]()
        type_ = source
        for depth, index in enumerate(indices):
            number = int_value(index)
            if depth > 0:
                type_ = self.body(type_)
                if isinstance(type_, T.StructType):
                    if number is None:
                        raise ValueError(f"{index} chooses a member of {type_}")
                    constant += self.offsets(type_)[number]
                    type_ = type_.elements[number]
                    continue
                assert isinstance(type_, T.ArrayType | T.VectorType)
                type_ = type_.element
            size = self.alloc_size(type_)
            if number is not None:
                constant += number * size
            else:
                steps.append((index, size))
        return constant, steps

    def moves(self, source: T.Type, indices: Sequence[Value]) -> Moves | None:
        """The same; None where it is not known."""
        try:
            return self.steps(source, indices)
        except ValueError:
            return None

    def _struct(self, structure: T.StructType) -> tuple[list[int], int, int]:
        """Offsets of the elements, size and alignment; the offsets are not to be changed."""
        known = self._structures.get(structure)
        if known is not None:
            return known
        offsets: list[int] = []
        end, most = 0, 1
        for element in structure.elements:
            align = 1 if structure.packed else self.align(element)
            end, most = _round_up(end, align), max(most, align)
            offsets.append(end)
            end += self.alloc_size(element)
        found = self._structures[structure] = offsets, _round_up(end, most), most
        return found


def leaves(layout: DataLayout, value: Constant, offset: int = 0) -> Iterator[tuple[int, Constant]]:
    """What a constant consists of, with the places in bytes."""
    match value:
        case ConstantAggregate(elements=elements):
            parts = elements
        case ConstantSplat(element=element):
            parts = [element] * len(layout.offsets(value.type))
        case _:
            yield offset, value
            return
    for part, place in zip(parts, layout.offsets(value.type), strict=True):
        yield from leaves(layout, part, offset + place)


def addresses(layout: DataLayout, value: Constant) -> Iterator[tuple[int, Constant]]:
    """The addresses in a constant, with their places in bytes."""
    return ((at, leaf) for at, leaf in leaves(layout, value) if isinstance(leaf, GlobalValue | ConstantExpr))
