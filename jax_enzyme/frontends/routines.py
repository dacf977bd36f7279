"""Routines of BLAS and LAPACK that the sources define and that there are rules for: the rules take their place.

They are known by name. That what a source defines is the routine, and not another of its name or one with wider
integers, debug information has to say: of every parameter, whether it leads to numbers or integers of the routine's
kind. What it does not say so of is code like any other, and so is a body that a compiler has already made use of in
calls of it.
"""

from __future__ import annotations

from collections.abc import Collection

from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import debug_node, resolve
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.linking import Names
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import Kind, Parameter, Result, Routine, routines
from jax_enzyme.rules.user import loses_arguments

_LEADS_ON = frozenset(
    "DW_TAG_pointer_type DW_TAG_reference_type DW_TAG_typedef DW_TAG_const_type DW_TAG_restrict_type "
    "DW_TAG_array_type DW_TAG_volatile_type".split()
)
_INTEGER_BITS = 32
_FLOAT_BITS = {T.FLOAT: 32, T.DOUBLE: 64}


def without_routines(ir: str, names: Names, roots: Collection[str]) -> str:
    """The text of a module without the bodies of such routines, but for `roots` themselves."""
    found = [name for name in names.functions if name not in roots and name in names.strong and name in routines()]
    if not found:
        return ir
    module = parse(ir)
    for function in (module.functions[name] for name in found if name in module.functions):
        if (
            function.blocks
            and _is_routine(module, function, routines()[function.name])
            and not loses_arguments(module, function)
        ):
            _declare(function)
    return to_text(module)


def _declare(function: Function) -> None:
    """Takes the body away, and what a compiler found out about it."""
    function.blocks, function.metadata, function.personality = [], [], None
    function.prefix = tuple(word for word in function.prefix if word not in LINKAGE)
    function.attributes = function.return_attributes = ()
    for argument in function.arguments:
        argument.attributes = ()


def _is_routine(module: Module, function: Function, routine: Routine) -> bool:
    if not routine.accepts(function.function_type):
        return False
    own = debug_node(module, function.metadata)
    kind = resolve(module, own.get("type")) if own is not None else None
    listed = resolve(module, kind.get("types")) if kind is not None else None
    if listed is None or len(listed.operands) <= len(routine.parameters):
        return False
    result, *parameters = listed.operands[: len(routine.parameters) + 1]
    if routine.result is Result.NUMBER and not _is_number(module, result, routine.scalar, routine.is_complex):
        return False
    pairs = zip(routine.parameters, parameters, strict=True)
    return all(_fits(module, parameter, given, routine) for parameter, given in pairs)


def _fits(module: Module, parameter: Parameter, given: MDValue | str | None, routine: Routine) -> bool:
    if parameter.kind is Kind.FLAG:
        return True  # flang says nothing of characters
    if parameter.is_float:
        is_complex = routine.is_complex and parameter.kind not in (Kind.REAL, Kind.REALS)
        return _is_number(module, given, routine.scalar, is_complex)
    type_ = _pointee(module, given)
    return type_ is not None and type_.get("encoding") == "DW_ATE_signed" and type_.number("size") == _INTEGER_BITS


def _is_number(module: Module, given: MDValue | str | None, scalar: T.FloatType, is_complex: bool) -> bool:
    type_ = _pointee(module, given)
    if type_ is None or type_.number("size") != _FLOAT_BITS[scalar] * (2 if is_complex else 1):
        return False
    if is_complex and type_.get("tag") == "DW_TAG_structure_type":
        return True
    return type_.get("encoding") == ("DW_ATE_complex_float" if is_complex else "DW_ATE_float")


def _pointee(module: Module, value: MDValue | str | None) -> MDNode | None:
    """The type that pointers, arrays and other names end at."""
    node = resolve(module, value)
    while node is not None and node.get("tag") in _LEADS_ON:
        node = resolve(module, node.get("baseType"))
    return node
