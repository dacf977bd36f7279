"""What debug information says of the type of a parameter or a result: how C would write it, and what lies in memory.

    struct point { double x, y; };

    const struct point *p    text `const point *`, behind a pointer, constant, numbers of f64 (`x`, `y`)

Opaque pointers do not tell what they point to; debug information does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import Module

_WORDS = {
    "DW_TAG_const_type": "const",
    "DW_TAG_volatile_type": "volatile",
    "DW_TAG_atomic_type": "_Atomic",
}
_SUFFIXES = {
    "DW_TAG_pointer_type": "*",
    "DW_TAG_restrict_type": "restrict",
    "DW_TAG_reference_type": "&",
    "DW_TAG_rvalue_reference_type": "&&",
    "DW_TAG_ptr_to_member_type": "::*",
}
_TRANSPARENT = (*_WORDS, "DW_TAG_restrict_type", "DW_TAG_typedef")
"""Types that are those which they name."""
POINTERS = tuple(tag for tag in _SUFFIXES if tag != "DW_TAG_restrict_type")
RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type")
UNION = "DW_TAG_union_type"
_MEMBERS = ("DW_TAG_member", "DW_TAG_inheritance")
_HALVES = ("f16", "bf16")
"""Numbers of half precision lie in the words that C has for them."""
_BYTES = ("i8", "u8", "bool")
_BASIC: dict[tuple[str, int], tuple[str, ...]] = {
    ("DW_ATE_float", 16): ("f16",), ("DW_ATE_float", 32): ("f32", "c64"), ("DW_ATE_float", 64): ("f64", "c128"),
    ("DW_ATE_complex_float", 64): ("c64", "f32"), ("DW_ATE_complex_float", 128): ("c128", "f64"),
    ("DW_ATE_boolean", 8): ("bool", "i8", "u8"), ("DW_ATE_boolean", 16): ("i16", "u16"),
    ("DW_ATE_boolean", 32): ("i32", "u32"), ("DW_ATE_boolean", 64): ("i64", "u64"),
    ("DW_ATE_signed", 8): _BYTES, ("DW_ATE_signed_char", 8): _BYTES, ("DW_ATE_signed", 16): ("i16", *_HALVES),
    ("DW_ATE_signed", 32): ("i32",), ("DW_ATE_signed", 64): ("i64",),
    ("DW_ATE_unsigned", 16): ("u16", *_HALVES), ("DW_ATE_unsigned", 32): ("u32",), ("DW_ATE_unsigned", 64): ("u64",),
    ("DW_ATE_UTF", 16): ("u16", "i16"), ("DW_ATE_UTF", 32): ("u32", "i32"),
}  # fmt: skip
"""The dtypes by which memory of a basic type may be declared; the first is its own."""
_CHARACTERS = ("char", "unsigned char")
"""What C reads any memory through."""
_WIDEST = 64
_COMPLEX = {"complex<float>": ("c64", "f32"), "complex<double>": ("c128", "f64")}
_DEPTH = 16
"""A type behind more members inside one another than these is one of which nothing is said."""


@dataclass(frozen=True)
class Piece:
    """One thing that lies in memory: a number, which may be declared by any of `dtypes` (by none, such as `long
    double`), bytes that may be anything, a pointer, or something that nothing is known of. `member` is its name in the
    structure that it is part of."""

    kind: Literal["number", "bytes", "pointer", "function", "unknown"]
    text: str
    dtypes: tuple[str, ...] = ()
    member: str | None = None


@dataclass(frozen=True)
class SourceType:
    """`text` is the type as C would write it; `pieces` is what lies behind its pointer (its outermost one), or what the
    value is made of, each kind of piece once. `is_record`: as a structure, or a union by value; `is_const`: and the
    source may not write there. `special` says what no plain array can be passed for: a descriptor behind the pointer,
    or an object of a library. `extents` are those of an array's dimensions, fastest first: None for those that are no
    numbers. `element_bytes` is the size of what the arrays are of, or the pointer leads to; `is_reference`: to one of
    them, not to the first of many."""

    text: str
    pieces: tuple[Piece, ...] = ()
    is_pointer: bool = False
    is_record: bool = False
    is_const: bool = False
    special: str | None = None
    extents: tuple[int | None, ...] = ()
    element_bytes: int | None = None
    is_reference: bool = False


def source_type(module: Module, value: MDValue | str | None) -> SourceType:
    """The type that a piece of debug information describes."""
    outer = plain_type(module, value)
    is_pointer = outer is not None and outer.get("tag") in POINTERS
    inner = outer.get("baseType") if outer is not None and is_pointer else outer
    node = plain_type(module, inner)
    tag = None if node is None else node.get("tag")
    unlike: dict[tuple[str, tuple[str, ...]], Piece] = {}
    for piece in _pieces(module, inner, _DEPTH):
        unlike.setdefault((piece.kind, piece.dtypes), piece)
    return SourceType(
        _text(module, value, _DEPTH),
        tuple(unlike.values()),
        is_pointer or tag == "DW_TAG_array_type",
        (tag in RECORDS and not _is_complex(module, node)) or (tag == UNION and not is_pointer),
        is_pointer and (_is_constant(module, inner) or _is_shared(outer)),
        _special(module, node),
        _extents(module, outer),
        _element_bytes(module, node),
        _is_reference(outer),
    )


def _is_reference(outer: MDNode | None) -> bool:
    if outer is None or outer.get("tag") not in POINTERS:
        return False
    return outer.get("tag") != "DW_TAG_pointer_type" or (outer.string("name") or "").startswith("&")  # as Rust has it


def _element_bytes(module: Module, node: MDNode | None) -> int | None:
    while node is not None and node.get("tag") == "DW_TAG_array_type":
        node = plain_type(module, node.get("baseType"))
    bits = None if node is None else node.number("size")
    return None if not bits else bits // 8


def _extents(module: Module, outer: MDNode | None) -> tuple[int | None, ...]:
    if outer is None:
        return ()
    if outer.get("tag") not in POINTERS:  # Fortran's arrays are described as such
        return tuple(array_extents(module, outer))
    # A pointer leads to the first of many, a reference to all of an array.
    extents: list[int | None] = [] if _is_reference(outer) else [None]
    element = plain_type(module, outer.get("baseType"))
    while element is not None and (found := array_extents(module, element)):
        extents += found
        element = plain_type(module, element.get("baseType"))
    return tuple(reversed(extents))


def array_extents(module: Module, value: MDValue | MDNode | str | None) -> list[int | None]:
    """The extents of an array's dimensions, in the order of the source (fastest first in Fortran): None for those that
    are no positive numbers. Nothing for what is no array."""
    node = plain_type(module, value)
    if node is None or node.get("tag") != "DW_TAG_array_type":
        return []
    listed = resolve(module, node.get("elements"))
    ranges = [] if listed is None else [resolve(module, r) for r in listed.operands]
    counts = [0 if r is None else r.number("count") or 0 for r in ranges]
    return [count if count > 0 else None for count in counts]


def member_name(member: MDNode) -> str | None:
    """What the source calls a member: flang puts module and type in front of a private one."""
    name = member.string("name")
    return name and name.rpartition(".")[2]


def plain_type(module: Module, value: MDValue | str | None) -> MDNode | None:
    """The type without its qualifiers and other names; None for `void`."""
    *_, last = _through(module, value, _TRANSPARENT)
    return last


def _is_constant(module: Module, value: MDValue | str | None) -> bool:
    nodes = _through(module, value, (*_TRANSPARENT, "DW_TAG_array_type"))
    return any(node is not None and node.get("tag") == "DW_TAG_const_type" for node in nodes)


def _through(module: Module, value: MDValue | str | None, tags: Collection[str]) -> Iterator[MDNode | None]:
    """A type, and what it is another name for, as long as it has one of the tags. Names of names come to an end, in
    all debug information but a damaged one."""
    seen: list[MDNode] = []
    node = resolve(module, value)
    while node is not None and node.get("tag") in tags and not any(node is s for s in seen):
        yield node
        seen.append(node)
        node = resolve(module, node.get("baseType"))
    yield node


def _is_shared(pointer: MDNode | None) -> bool:
    """Rust says in the name of a pointer that nothing is written through it."""
    name = (None if pointer is None else pointer.string("name")) or ""
    if name.startswith("&"):
        return not name.startswith("&mut ") and "core::cell::" not in name and "core::sync::" not in name
    return name.startswith("*const ")


def _special(module: Module, node: MDNode | None) -> str | None:
    if node is None or node.kind != "DICompositeType":
        return None
    if node.get("tag") == "DW_TAG_array_type":
        described = "passed with a descriptor (assumed shape, allocatable or pointer)"
        return described if node.get("dataLocation") else None
    # The plain objects of the library (`std::array`) are memory like any other; of what nothing uses the name alone
    # tells that it is one.
    if "DIFlagNonTrivial" in str(node.get("flags")) and _is_standard(module, node) and not _is_plain(module, node):
        return "an object of the C++ library"
    return None


def _is_plain(module: Module, node: MDNode) -> bool:
    declared_only = "DIFlagFwdDecl" in str(node.get("flags"))
    return _is_complex(module, node) or (declared_only and (node.string("name") or "").startswith("array<"))


# -- what lies there


def _pieces(module: Module, value: MDValue | str | None, depth: int) -> Iterator[Piece]:
    node = plain_type(module, value)
    text = _text(module, value, _DEPTH)
    if node is None or depth == 0:
        yield Piece("unknown", text)
    elif node.kind == "DIBasicType":
        yield _number(node, text)
    elif node.kind == "DIStringType":
        yield Piece("bytes", text)
    elif node.kind == "DISubroutineType":
        yield Piece("function", text)
    elif node.get("tag") in POINTERS or node.get("dataLocation"):
        yield Piece("pointer", text)
    elif node.kind == "DICompositeType":
        yield from _composite(module, node, text, depth - 1)
    else:
        yield Piece("unknown", text)


def _composite(module: Module, node: MDNode, text: str, depth: int) -> Iterator[Piece]:
    tag = node.get("tag")
    if tag == "DW_TAG_array_type":
        yield from _pieces(module, node.get("baseType"), depth)
    elif tag == "DW_TAG_enumeration_type":
        for piece in _pieces(module, node.get("baseType"), depth):
            # Which sign a compiler gives to an enumeration is its own choice.
            signs = tuple(dict.fromkeys(sign + d[1:] for d in piece.dtypes for sign in (d[0], "i", "u")))
            yield replace(piece, text=text, dtypes=signs)
    elif _is_complex(module, node):
        yield Piece("number", text, _COMPLEX[node.string("name") or ""])
    elif tag == UNION:
        yield _either(list(_members(module, node, depth)), text)
    else:
        yield from (list(_members(module, node, depth)) if tag in RECORDS else ()) or (Piece("unknown", text),)


def _members(module: Module, node: MDNode, depth: int) -> Iterator[Piece]:
    listed = resolve(module, node.get("elements"))
    for value in () if listed is None else listed.operands:
        member = resolve(module, value)
        if member is None or member.kind == "DISubprogram" or "DIFlagStaticMember" in str(member.get("flags")):
            continue
        if member.get("tag") in _MEMBERS:
            for piece in _pieces(module, member.get("baseType"), depth):
                names = [name for name in (member_name(member), piece.member) if name]
                yield replace(piece, member=".".join(names) or None)
        elif member.get("tag") == "DW_TAG_variant_part":
            yield Piece("unknown", "an enumeration with contents")


def _either(pieces: list[Piece], text: str) -> Piece:
    """Of a union it is not known which of its members is meant."""
    known = pieces and all(p.kind == "number" for p in pieces)
    return Piece("number", text, tuple(d for p in pieces for d in p.dtypes)) if known else Piece("unknown", text)


def _number(node: MDNode, text: str) -> Piece:
    encoding, bits, name = str(node.get("encoding")), node.number("size") or 0, node.string("name")
    if name in ("__bf16", "std::bfloat16_t"):
        return Piece("number", text, ("bf16",))
    if bits == 8 and (name in _CHARACTERS or encoding in ("DW_ATE_unsigned", "DW_ATE_unsigned_char", "DW_ATE_UTF")):
        return Piece("bytes", text)
    dtypes = _BASIC.get((encoding, bits))
    if dtypes is None and bits <= _WIDEST:
        return Piece("unknown", text)
    return Piece("number", text, dtypes or ())


def _is_complex(module: Module, node: MDNode | None) -> bool:
    return node is not None and node.string("name") in _COMPLEX and _is_standard(module, node)


def _is_standard(module: Module, node: MDNode) -> bool:
    scope = resolve(module, node.get("scope"))
    while scope is not None and scope.string("name") != "std":
        scope = resolve(module, scope.get("scope"))
    return scope is not None


# -- how it is written


def _text(module: Module, value: MDValue | str | None, depth: int) -> str:
    node = resolve(module, value)
    if node is None:
        return "void"
    name, tag = node.string("name"), str(node.get("tag"))
    if node.kind == "DIBasicType":
        return name or "?"
    if depth == 0:
        return "..."
    if node.kind == "DIStringType":
        return "character"
    if node.kind == "DISubroutineType":
        return "function"
    base = node.get("baseType")
    if node.kind == "DIDerivedType":
        if tag in _SUFFIXES and name:
            return name  # as Rust has it
        if tag in _SUFFIXES:
            text = _text(module, base, depth - 1)
            return f"{text}{'' if text.endswith(('*', '&')) else ' '}{_SUFFIXES[tag]}"
        return _qualified(_WORDS[tag], _text(module, base, depth - 1)) if tag in _WORDS else name or "?"
    if tag == "DW_TAG_array_type":
        return _text(module, base, depth - 1) + "".join(f"[{n or ''}]" for n in array_extents(module, node))
    return f"std::{name}" if _is_complex(module, node) else name or "struct"


def _qualified(word: str, text: str) -> str:
    """A word before a type is that of what its pointers lead to, not that of the last pointer."""
    return f"{text}{word}" if text.endswith("*") else f"{word} {text}"
