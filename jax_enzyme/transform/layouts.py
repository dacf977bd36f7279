"""Where the members of structures lie: as debug information says, else as C lays them out.

    struct rec { char tag; double k; double *x; };        "p: {tag: i8, k: f64, x: f64[n]*}*"       0, 8, 16; 24 bytes

Where the source describes the structure, its members are held against those of the signature, one by one and in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from math import prod

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.signature.expressions import Expression, evaluate
from jax_enzyme.signature.formals import Formal, Null, Plain, Record
from jax_enzyme.signature.model import Order
from jax_enzyme.signature.params import INTEGERS, Param
from jax_enzyme.transform.declared import mismatch
from jax_enzyme.transform.described import Described, described
from jax_enzyme.transform.source_types import (
    POINTERS,
    RECORDS,
    UNION,
    SourceType,
    array_extents,
    member_name,
    plain_type,
    source_type,
)

POINTER_BYTES = 8
_COMPLEX = ("c64", "c128")

IN_REGISTERS = 16
"""Structures of more bytes are not passed in general registers; in floating-point registers of ARM there may be more
of them."""


@dataclass(frozen=True)
class Layout:
    """Bytes of a structure, its alignment (in the source's at least what it asks for by `alignas` or by vectors), and
    the places of its members; `inner` has the layouts of those that are structures or lead to them, None for others;
    `known` says what those describe that are descriptors of Fortran's."""

    size: int
    align: int
    offsets: tuple[int, ...]
    inner: tuple[Layout | None, ...]
    known: tuple[Described | None, ...]

    def of(self, record: Record) -> Iterator[tuple[Formal, int, Layout | None, Described | None]]:
        """The members of a structure, with their places, layouts and descriptors."""
        return zip(record.members, self.offsets, self.inner, self.known, strict=True)


_ORDERS: tuple[Order, ...] = ("C", "F")


class Differs(Exception):
    """The structure in the source is another one: `found` says what its member is; `source` shows all of it."""

    def __init__(self, found: str, source: str) -> None:
        super().__init__(found)
        self.source = source


def extent(dims: Sequence[Expression] | None) -> int:
    """The elements of an array in a structure, whose size is a number."""
    return prod(evaluate(dim, {}) for dim in dims or ())


def natural(record: Record) -> Layout:
    """The layout that C gives to a structure."""
    offset, widest = 0, 1
    offsets: list[int] = []
    inner: list[Layout | None] = []
    for member in record.members:
        nested = natural(member) if isinstance(member, Record) else None
        size, align = _space(member, nested)
        offset = -(-offset // align) * align
        offsets.append(offset)
        inner.append(nested)
        offset += size
        widest = max(widest, align)
    return Layout(-(-offset // widest) * widest, widest, tuple(offsets), tuple(inner), (None,) * len(inner))


def _space(member: Formal, nested: Layout | None) -> tuple[int, int]:
    if isinstance(member, Plain) and member.in_place:
        item = ITEM_BYTES[member.param.dtype]
        return 0 if member.is_tail else item * extent(member.own), item // 2 if member.param.dtype in _COMPLEX else item
    if isinstance(member, Record) and nested is not None and not member.is_pointer:
        return nested.size * extent(member.count), nested.align
    return POINTER_BYTES, POINTER_BYTES


def places(record: Record, layout: Layout, base: int = 0) -> Iterator[int]:
    """Where the numbers and pointers of a structure lie in it."""
    for member, offset, inner, _ in layout.of(record):
        if isinstance(member, Plain) and member.in_place:
            size, _ = _space(member, None)
            step = size // max(1, extent(member.own) * (2 if member.param.dtype in _COMPLEX else 1))
            yield from range(base + offset, base + offset + size, step)
        elif isinstance(member, Record) and inner is not None and not member.is_pointer:
            for index in range(extent(member.count)):
                yield from places(member, inner, base + offset + index * inner.size)
        else:
            yield base + offset


# -- what the source has


@dataclass(frozen=True)
class Member:
    """A member as the source has it: `size` in bytes. Bit fields that lie together are one; they may be accessed with
    what follows them as far as they have `room`, in bytes."""

    name: str
    offset: int
    size: int
    type: MDValue | str | None
    known: SourceType
    room: int | None = None


def layout_of(module: Module, record: Record, value: MDValue | str | None) -> Layout:
    """The layout of a structure of this type in the source, or of a union, which is the first of its `alternatives`
    that fits. Differs where that is another structure."""
    node = composite_type(module, value)
    if node is None:
        return natural(record)
    if node.get("tag") != UNION:
        return _laid_out(module, record, node, members_of(module, node))
    for members in alternatives(module, node):
        with contextlib.suppress(Differs):
            return _laid_out(module, record, node, members)
    raise Differs("none of the members of the union is that", _shown(module, node, list(_members(module, node, 0))))


def _laid_out(module: Module, record: Record, node: MDNode, members: Sequence[Member]) -> Layout:
    if not members:
        return natural(record)
    source = _shown(module, node, members)
    inner: list[Layout | None] = []
    known: list[Described | None] = []
    for index, formal in enumerate(record.members):
        if index >= len(members):
            raise Differs(f"the source has no member {index + 1}, which is `{formal.text(record.direction)}`", source)
        found = members[index]
        try:
            known.append(_descriptor(module, formal, found))
            inner.append(_member_layout(module, _alone(record, formal), found) if known[-1] is None else None)
        except _Wrong:
            named = f"`{found.known.text} {found.name}`"
            raise Differs(
                f"member {index + 1} is `{formal.text(record.direction)}`, in the source {named}", source
            ) from None
    if len(members) > len(record.members):
        more = members[len(record.members)]
        raise Differs(f"the source has one more member, `{more.known.text} {more.name}`", source)
    given, there = [f.text("in").partition(":")[0].split()[-1] for f in record.members], [m.name for m in members]
    if given != there and sorted(given) == sorted(there):
        raise Differs("the members come in another order in the source", source)
    offsets = tuple(m.offset for m in members)
    return Layout(structure_bytes(module, node), _alignment(module, node), offsets, tuple(inner), tuple(known))


def _alignment(module: Module, value: MDValue | str | None) -> int:
    """The bytes to which a type is aligned, where the source says so anywhere in it; vectors are to their size."""
    node = resolve(module, value)
    if node is None or node.get("tag") in POINTERS:
        return 1
    is_vector = "DIFlagVector" in str(node.get("flags"))
    own = max(node.number("align") or 0, (node.number("size") or 0) if is_vector else 0, 8) // 8
    listed = resolve(module, node.get("elements")) if node.get("tag") in (*RECORDS, UNION) else None
    parts = [node.get("baseType")] if listed is None else listed.operands
    return max([own, *(_alignment(module, part) for part in parts)])


class _Wrong(Exception):
    pass


def _alone(record: Record, formal: Formal) -> Formal:
    """A member without the word that stands before its structure: `inout` is meant for those members that the source
    may write."""
    if not isinstance(formal, Plain) or not formal.param.direction == record.direction == "inout":
        return formal
    return replace(formal, param=replace(formal.param, direction="in"))


def record_type(module: Module, value: MDValue | str | None) -> MDNode | None:
    """The structure that a type is, without other names for it, or None."""
    node = plain_type(module, value)
    return node if node is not None and node.get("tag") in RECORDS else None


def composite_type(module: Module, value: MDValue | str | None) -> MDNode | None:
    """The structure or union that a type is, without other names for it, or None."""
    node = plain_type(module, value)
    return node if node is not None and node.get("tag") in (*RECORDS, UNION) else None


def is_object(module: Module, value: MDValue | str | None) -> bool:
    """Whether a type is a class of C++ that is copied or destroyed by functions of its own."""
    node = plain_type(module, value)
    return node is not None and "DIFlagTypePassByReference" in str(node.get("flags"))


def pointed_at(module: Module, value: MDValue | str | None) -> MDValue | str | None:
    """What a pointer or reference leads to. Raises KeyError for other types."""
    node = plain_type(module, value)
    if node is None or node.get("tag") not in POINTERS:
        raise KeyError(value)
    return node.get("baseType")


def elements_of(module: Module, value: MDValue | str | None) -> MDValue | str | None:
    """What an array is of; the type itself where it is none."""
    node = plain_type(module, value)
    return node.get("baseType") if node is not None and node.get("tag") == "DW_TAG_array_type" else value


def declared_counts(module: Module, value: MDValue | str | None) -> list[int]:
    """The extents of an array, fastest first in Fortran, where all of them are numbers; else nothing."""
    counts = array_extents(module, value)
    return [] if None in counts else [count for count in counts if count is not None]


def is_unknown(module: Module, value: MDValue | str | None) -> bool:
    """Whether nothing is said of a type: `void`, or a structure whose members are elsewhere."""
    node = plain_type(module, value)
    return node is None or "DIFlagFwdDecl" in str(node.get("flags"))


def members_of(module: Module, node: MDNode) -> list[Member]:
    """The members of a structure, those of what it inherits first."""
    found = list(_members(module, node, 0))
    ends = [m.offset for m in found[1:]] + [structure_bytes(module, node)]
    members: list[Member] = []
    for member, end in zip(found, ends, strict=True):
        if member.room is None:
            members.append(member)
        elif members and members[-1].room is not None:
            members[-1] = _together(members[-1], member, end)
        else:
            members.append(replace(member, room=max(end - member.offset, member.size)))
    return members


def alternatives(module: Module, node: MDNode) -> Iterator[list[Member]]:
    """What the members of a structure in the place of a union may be: those of a structure that is a member, or a
    member by itself."""
    for member in _members(module, node, 0):
        inner = record_type(module, member.type)
        if inner is not None:
            yield members_of(module, inner)
        yield [member]


def structure_bytes(module: Module, node: MDNode) -> int:
    """The bytes from one structure to the next in an array. Flang leaves out what follows the last member, and says how
    each is aligned; clang says that where the source does."""
    listed = resolve(module, node.get("elements"))
    members = [resolve(module, value) for value in (() if listed is None else listed.operands)]
    align = max((member.number("align") or 1 for member in members if member is not None), default=1)
    return -(-(node.number("size") or 0) // max(align, 8)) * max(align, 8) // 8


def _together(first: Member, last: Member, end: int) -> Member:
    size = max(last.offset + last.size - first.offset, first.size)
    known = replace(first.known, text="bit fields")
    room = max(end - first.offset, size)
    return replace(first, name=f"{first.name}_{last.name}", size=size, known=known, room=room)


def _members(module: Module, node: MDNode, base: int) -> Iterator[Member]:
    listed = resolve(module, node.get("elements"))
    for value in () if listed is None else listed.operands:
        member = resolve(module, value)
        if member is None or member.kind != "DIDerivedType" or "DIFlagStaticMember" in str(member.get("flags")):
            continue
        offset = base + (member.number("offset") or 0) // 8
        inner = record_type(module, member.get("baseType"))
        is_unnamed = node.get("tag") != UNION and not member.string("name")
        if inner is not None and (member.get("tag") == "DW_TAG_inheritance" or is_unnamed):
            yield from _members(module, inner, offset)
        elif member.get("tag") == "DW_TAG_member":
            type_ = member.get("baseType")
            known = source_type(module, type_)
            bits, room = member.number("size") or 0, None
            if "DIFlagBitField" in str(member.get("flags")):
                bits, room = bits + (member.number("offset") or 0) % 8, 0
                known = SourceType(f"{known.text} (a bit field)")
            elif known.special is not None:
                known = replace(known, text=f"{known.text} ({known.special})")
            name = member_name(member) or _name_inside(module, type_)
            yield Member(name, offset, -(-bits // 8), type_, known, room)


def _name_inside(module: Module, value: MDValue | str | None) -> str:
    """What a member without a name is called: a union, by its first member."""
    node = composite_type(module, value)
    return "?" if node is None else next((member.name for member in _members(module, node, 0)), "?")


def _shown(module: Module, node: MDNode, members: Sequence[Member]) -> str:
    listed = ", ".join(f"{m.known.text} {m.name} at {m.offset}" for m in members)
    kind = "union" if node.get("tag") == UNION else "struct"
    return f"{kind} {node.string('name') or ''} {{{listed}}}, {structure_bytes(module, node)} bytes"


def _descriptor(module: Module, formal: Formal, found: Member) -> Described | None:
    """What a member describes that is a descriptor, None for others. _Wrong where the signature has another array."""
    known = described(module, found.type)
    if known is None or (isinstance(formal, Null) and known.dtypes):
        return known
    if not isinstance(formal, Plain) or formal.in_place or formal.levels or known.beyond(formal) is not None:
        raise _Wrong
    element = source_type(module, elements_of(module, found.type))
    if len(formal.own or ()) != known.rank or mismatch(_scalar(formal), element):
        raise _Wrong
    return known


def _member_layout(module: Module, formal: Formal, found: Member) -> Layout | None:
    """The layout of a structure that a member is or leads to. _Wrong for another kind of member."""
    node = plain_type(module, found.type)
    is_pointer = node is not None and node.get("tag") in POINTERS
    if isinstance(formal, Plain) and formal.in_place:
        item = ITEM_BYTES[formal.param.dtype]
        # An array of any size is declared without one, or with one element.
        size = min(found.size, item) if formal.is_tail else item * extent(formal.own)
        if found.room is not None:
            if formal.param.dtype not in INTEGERS or not found.size <= size <= found.room:
                raise _Wrong
            return None
        if is_pointer or size != found.size or mismatch(_element(formal), found.known):
            raise _Wrong
        return None
    if isinstance(formal, Record) and not formal.is_pointer:
        return _nested(module, formal, found)
    if not is_pointer or found.size != POINTER_BYTES:
        raise _Wrong
    if isinstance(formal, Record):
        behind = pointed_at(module, found.type)
        if composite_type(module, behind) is None and not is_unknown(module, behind):
            raise _Wrong
        return layout_of(module, formal, behind)
    if isinstance(formal, Plain) and not fits_behind(module, formal, found.type):
        raise _Wrong
    return None


def _nested(module: Module, formal: Record, found: Member) -> Layout:
    value = found.type if formal.count is None else elements_of(module, found.type)
    if composite_type(module, value) is None:
        raise _Wrong
    layout = layout_of(module, formal, value)
    if layout.size * extent(formal.count) != found.size:
        raise _Wrong
    return layout


def fits_behind(module: Module, formal: Plain, value: MDValue | str | None) -> bool:
    """Whether a pointer of the source leads to what a formal says, through its arrays of pointers."""
    for _ in formal.levels:
        try:
            value = pointed_at(module, value)
        except KeyError:
            return False
        node = plain_type(module, value)
        if node is None:
            return True
        if node.get("tag") not in POINTERS:
            return False
    known = source_type(module, value)
    return any(mismatch(_element(formal), known, order=order) is None for order in _ORDERS)


def _scalar(formal: Plain) -> Param:
    return replace(formal.param, dims=(), value=None)


def _element(formal: Plain) -> Param:
    return replace(formal.param, dims=formal.element, value=None)
