"""Holds a function that a signature passes against what the source calls it as.

    double f(double (*g)(double), double x)     "g: fn(h), x: f64 -> f64"    refused for `double h(double, double)`

Machine code would read the missing argument in a register that holds something else. Pointers are not told apart, as in
C, where a cast makes one of another; nor is a number of parameters that the source leaves open (`g()`, `...`).
"""

from __future__ import annotations

from jax_enzyme.ir.debug import debug_node, is_written_in, resolve
from jax_enzyme.ir.metadata import MDNode, MDNull, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.transform.source_types import POINTERS, plain_type, source_type


def unlike_function(module: Module, parameter: MDValue, passed: Function) -> tuple[str, str] | None:
    """The type of a function and another one that the parameter has, both as C writes them; None where they agree, or
    it is not known. Fortran describes what it passes by reference as if it passed it by value."""
    own = debug_node(module, passed.metadata)
    pointer = plain_type(module, parameter)
    if own is None or pointer is None or pointer.get("tag") not in POINTERS or is_written_in(module, own, "Fortran"):
        return None
    there, wanted = _types(module, resolve(module, own.get("type"))), _types(module, _behind(module, pointer))
    if not there or not wanted or _agree(module, wanted, there):
        return None
    return _text(module, there), _text(module, wanted)


def _behind(module: Module, pointer: MDNode) -> MDNode | None:
    return plain_type(module, pointer.get("baseType"))


def _types(module: Module, node: MDNode | None) -> list[MDValue]:
    """The result of a type of functions, then the parameters; nothing where it is no such type."""
    listed = resolve(module, node.get("types")) if node is not None and node.kind == "DISubroutineType" else None
    return [] if listed is None else list(listed.operands)


def _agree(module: Module, wanted: list[MDValue], there: list[MDValue]) -> bool:
    is_open = any(isinstance(listed[-1], MDNull) and len(listed) > 1 for listed in (wanted, there))
    if len(wanted) != len(there) and not is_open:
        return False
    if not isinstance(wanted[0], MDNull) and not _alike(module, wanted[0], there[0]):
        return False
    pairs = zip(wanted[1:], there[1:], strict=False)
    return all(isinstance(a, MDNull) or isinstance(b, MDNull) or _alike(module, a, b) for a, b in pairs)


def _alike(module: Module, wanted: MDValue, there: MDValue) -> bool:
    kinds = _kind(module, wanted), _kind(module, there)
    return None in kinds or kinds[0] == kinds[1]


def _kind(module: Module, value: MDValue) -> tuple[str, int] | None:
    """How a value of a type is passed, as far as that is known."""
    node = plain_type(module, value)
    if node is None:
        return ("nothing", 0)
    bits = node.number("size") or 0
    if node.get("tag") in POINTERS:
        return ("pointer", 0)
    if node.get("tag") == "DW_TAG_enumeration_type":
        return ("integer", bits)
    if node.kind != "DIBasicType":
        return None
    encoding = str(node.get("encoding"))
    return (encoding if "float" in encoding else "integer", bits)


def _text(module: Module, types: list[MDValue]) -> str:
    result, *parameters = (
        "..." if i and isinstance(t, MDNull) else source_type(module, t).text for i, t in enumerate(types)
    )
    return f"{result} ({', '.join(parameters) or 'void'})"
