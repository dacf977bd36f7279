"""What the debug information says about a function as it stands in its source: place, parameter names and types.

Opaque pointers do not tell what they point to; debug information does, so that `float *` for an `f64[n]` is found
before it reads garbage. All of it is optional: a function without debug information has an empty prototype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax_enzyme.ir.metadata import MDNode, MDNull, MDRef, MDValue
from jax_enzyme.ir.module import Function, Module

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
}
_ELEMENTS = {
    ("DW_ATE_float", 16): "f16", ("DW_ATE_float", 32): "f32", ("DW_ATE_float", 64): "f64",
    ("DW_ATE_complex_float", 64): "c64", ("DW_ATE_complex_float", 128): "c128", ("DW_ATE_boolean", 8): "bool",
    ("DW_ATE_signed", 16): "i16", ("DW_ATE_signed", 32): "i32", ("DW_ATE_signed", 64): "i64",
    ("DW_ATE_boolean", 32): "i32", ("DW_ATE_boolean", 64): "i64",
    ("DW_ATE_unsigned", 16): "u16", ("DW_ATE_unsigned", 32): "u32", ("DW_ATE_unsigned", 64): "u64",
}  # fmt: skip
_COMPLEX = {"complex<float>": "c64", "complex<double>": "c128"}
_DEPTH = 16
"""A type behind more names and pointers than these is one of which nothing is said."""


@dataclass(frozen=True)
class SourceType:
    """`text` is the type as C would write it; `element` the dtype of what lies behind its pointers, where that is one
    (not for structures, `void` or bytes); `is_pointer` says whether there is a pointer or an array at all. `refused` is
    the reason why no plain array can be passed there: behind the pointer is a descriptor or an object of a library."""

    text: str
    element: str | None
    is_pointer: bool
    refused: str | None = None


@dataclass(frozen=True)
class Prototype:
    """`place` is `file:line`; `result` is None for `void`; `parameters` is None where the types are not known, and has
    those of the source: not the lengths of its texts, which a Fortran compiler adds."""

    name: str
    place: str | None = None
    result: SourceType | None = None
    parameters: tuple[SourceType, ...] | None = None
    names: Mapping[int, str] | None = None
    is_fortran: bool = False

    def parameter_name(self, index: int) -> str | None:
        """The name of a parameter in the source, counted from 0."""
        return (self.names or {}).get(index)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        listed = [
            f"{t.text}{'' if t.text.endswith('*') else ' '}{self.parameter_name(i) or ''}".rstrip()
            for i, t in enumerate(self.parameters)
        ]
        return f"{self.result.text if self.result else 'void'} {self.name}({', '.join(listed)})"


def prototype(module: Module, function: Function) -> Prototype:
    """The prototype of a function, as far as it is known."""
    reader = _Reader(module)
    subprogram = next((reader.node(value) for kind, value in function.metadata if kind == "dbg"), None)
    if subprogram is None:
        return Prototype(function.name)
    types = _types(reader, subprogram)
    return Prototype(
        function.name,
        _place(reader, subprogram),
        types[0] if types else None,
        None if types is None else tuple(t or SourceType("...", None, False) for t in types[1:]),
        _names(module, function),
        _is_fortran(reader, subprogram),
    )


class _Reader:
    def __init__(self, module: Module) -> None:
        self.metadata = module.metadata

    def node(self, value: MDValue | str | None) -> MDNode | None:
        if isinstance(value, MDRef):
            return self.metadata.get(value.number)
        return value if isinstance(value, MDNode) else None


def _place(reader: _Reader, subprogram: MDNode) -> str | None:
    file = reader.node(subprogram.get("file"))
    name = None if file is None else file.string("filename")
    line = subprogram.number("line")
    return name if name is None or line is None else f"{name}:{line}"


def _is_fortran(reader: _Reader, subprogram: MDNode) -> bool:
    unit = reader.node(subprogram.get("unit"))
    return unit is not None and str(unit.get("language")).startswith("DW_LANG_Fortran")


def _names(module: Module, function: Function) -> dict[int, str]:
    """Front ends differ in where they list a function's variables; the variables all name the function."""
    subprogram = dict(function.metadata).get("dbg")
    found: dict[int, str] = {}
    for node in module.metadata.values():
        if node.kind == "DILocalVariable" and node.get("scope") == subprogram:
            number, name = node.number("arg"), node.string("name")
            if number is not None and name is not None:
                found[number - 1] = name
    return found


def _types(reader: _Reader, subprogram: MDNode) -> list[SourceType | None] | None:
    """The result, then the parameters; None where there are no types."""
    kind = reader.node(subprogram.get("type"))
    listed = None if kind is None else reader.node(kind.get("types"))
    if listed is None or not listed.operands:
        return None
    return [None if isinstance(value, MDNull) else _type(reader, value, _DEPTH) for value in listed.operands]


def _type(reader: _Reader, value: MDValue | str | None, depth: int) -> SourceType:
    node = reader.node(value)
    if node is None:
        return SourceType("void", None, False)
    name, tag = node.string("name"), node.get("tag")
    if node.kind == "DIBasicType":
        return SourceType(name or "?", _element(node), False)
    if depth == 0:
        return SourceType("...", None, False)
    if node.kind == "DIDerivedType":
        base = _type(reader, node.get("baseType"), depth - 1)
        if tag in _SUFFIXES:
            glue = "" if base.text.endswith(("*", "&")) else " "
            pointer = tag != "DW_TAG_restrict_type"
            # What is behind two pointers is no array of a dtype.
            element = None if pointer and base.is_pointer and base.text.endswith("*") else base.element
            text = f"{base.text}{glue}{_SUFFIXES[str(tag)]}"
            return SourceType(text, element, pointer or base.is_pointer, base.refused)
        text = f"{_WORDS[str(tag)]} {base.text}" if tag in _WORDS else name or base.text
        return SourceType(text, base.element, base.is_pointer, base.refused)
    if node.kind == "DICompositeType" and tag == "DW_TAG_array_type":
        base = _type(reader, node.get("baseType"), depth - 1)
        described = "is passed with a descriptor (assumed shape, allocatable or pointer)"
        return SourceType(f"{base.text}[]", base.element, True, described if node.get("dataLocation") else None)
    if name in _COMPLEX and _is_standard(reader, node):
        return SourceType(f"std::{name}", _COMPLEX[name], False)
    return SourceType(name or "struct", None, False, _library_object(reader, node))


def _library_object(reader: _Reader, node: MDNode) -> str | None:
    """Why an object of the standard library (`std::vector`) is no plain memory; None for other types, and for the plain
    ones of the library (`std::array`)."""
    if "DIFlagNonTrivial" not in str(node.get("flags")):
        return None
    return "is an object of the C++ library" if _is_standard(reader, node) else None


def _is_standard(reader: _Reader, node: MDNode) -> bool:
    scope = reader.node(node.get("scope"))
    while scope is not None and scope.string("name") != "std":
        scope = reader.node(scope.get("scope"))
    return scope is not None


def _element(node: MDNode) -> str | None:
    encoding, bits = node.get("encoding"), node.number("size")
    if node.string("name") in ("__bf16", "std::bfloat16_t"):
        return "bf16"
    return _ELEMENTS.get((encoding, bits)) if isinstance(encoding, str) and bits is not None else None
