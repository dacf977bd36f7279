"""C++ exceptions as values: which `catch` an exception of a known type arrives at.

Types are their `_ZTI...` globals. Where a type is defined in the module its bases are read from there, for the standard
library's they are known; where nothing is known, an exception matches nothing but `catch (...)`.
"""

from __future__ import annotations

from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantNull, Value, int_value

_BASES = {
    "logic_error": "exception", "runtime_error": "exception", "bad_alloc": "exception", "bad_cast": "exception",
    "bad_typeid": "exception", "bad_exception": "exception", "bad_function_call": "exception",
    "domain_error": "logic_error", "invalid_argument": "logic_error", "length_error": "logic_error",
    "out_of_range": "logic_error", "range_error": "runtime_error", "overflow_error": "runtime_error",
    "underflow_error": "runtime_error", "system_error": "runtime_error",
    "bad_array_new_length": "bad_alloc", "bad_any_cast": "bad_cast",
    "bad_optional_access": "exception", "bad_variant_access": "exception",
}  # fmt: skip
_STANDARD = "_ZTISt"


def is_kind_of(module: Module, thrown: str, caught: str) -> bool:
    """Whether an exception of the one type is certainly caught as the other, at the same address."""
    seen: set[str] = set()
    pending = [thrown]
    while pending:
        name = pending.pop()
        if name == caught:
            return True
        if name not in seen:
            seen.add(name)
            pending += _bases(module, name)
    return False


def clause_type(clause: Value) -> str | None:
    """The type of a `catch` clause: its symbol, the empty string for `catch (...)`, None for what is neither."""
    if isinstance(clause, ConstantNull):
        return ""
    return clause.name if isinstance(clause, GlobalVariable) else None


def _bases(module: Module, name: str) -> list[str]:
    variable = module.globals.get(name)
    held = variable.initializer if variable is not None else None
    if isinstance(held, ConstantAggregate):
        return _defined_bases(held.elements)
    if name.startswith(_STANDARD):
        plain = name.removeprefix(_STANDARD).lstrip("0123456789")
        base = _BASES.get(plain)
        return [f"{_STANDARD}{len(base)}{base}" if base != "exception" else f"{_STANDARD}9exception"] if base else []
    return []


def _defined_bases(fields: list[Constant]) -> list[str]:
    """After the table of functions and the name: one base, or flags, count and pairs of base and offset."""
    if len(fields) == 3 and isinstance(fields[2], GlobalVariable):
        return [fields[2].name]
    found: list[str] = []
    for base, place in zip(fields[4::2], fields[5::2], strict=False):
        # The low byte has flags (1: virtual); an offset of 0 is the same address.
        offset = int_value(place)
        if isinstance(base, GlobalVariable) and offset is not None and offset >> 8 == 0 and not offset & 1:
            found.append(base.name)
    return found
