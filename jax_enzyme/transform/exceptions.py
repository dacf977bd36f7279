"""C++ exceptions as values: which `catch` an exception of a known type arrives at, and which handlers are open where.

Types are their `_ZTI...` globals. Where a type is defined in the module its bases are read from there, for the standard
library's they are known; where nothing is known, an exception matches nothing but `catch (...)`.
"""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.transform.class_hierarchy import defined_bases

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
_CHANGES: Mapping[str | None, int] = {"__cxa_begin_catch": 1, "__cxa_end_catch": -1}
_DIFFERS = -1
_OF_LIBCXX = {
    "_ZTINSt3__112system_errorE": "_ZTISt13runtime_error",
    "_ZTINSt3__18ios_base7failureE": "_ZTINSt3__112system_errorE",
    "_ZTINSt3__14__fs10filesystem16filesystem_errorE": "_ZTINSt3__112system_errorE",
    "_ZTINSt3__111regex_errorE": "_ZTISt13runtime_error",
    "_ZTINSt3__112future_errorE": "_ZTISt11logic_error",
    "_ZTINSt3__117bad_function_callE": "_ZTISt9exception",
    "_ZTINSt3__112bad_weak_ptrE": "_ZTISt9exception",
}
"""Classes that libc++ has in its own namespace, and their bases."""


def is_kind_of(module: Module, thrown: str, caught: str) -> bool:
    """Whether an exception of the one type is certainly caught as the other, at the same address."""
    return caught in reached([thrown], lambda name: _bases(module, name))


def clause_type(clause: Value) -> str | None:
    """The type of a `catch` clause: its symbol, the empty string for `catch (...)`, None for what is neither."""
    if isinstance(clause, ConstantNull):
        return ""
    return clause.name if isinstance(clause, GlobalVariable) else None


def handler_depths(function: Function) -> dict[I.Instruction, int]:
    """In how many handlers control is before each call that begins or ends one, where that is so along every path.

    Lattice: None (control does not come here), a depth, and above all of them `_DIFFERS`. A handler that begins adds
    one; one that ends takes one away, on the way of an exception that its end throws as well.
    """
    cfg = Cfg(function)
    changes = {block: [i for i in block.instructions if callee_name(i) in _CHANGES] for block in cfg.rpo}

    def behind(block: BasicBlock, depths: Mapping[BasicBlock, int | None]) -> int | None:
        known = {depth for pred in cfg.reachable_preds(block) if (depth := depths[pred]) is not None}
        known |= {0} if block is cfg.entry else set()
        if len(known) != 1 or _DIFFERS in known:
            return _DIFFERS if known else None
        return max(sum(_CHANGES[callee_name(i)] for i in changes[block]) + known.pop(), _DIFFERS)

    found: dict[I.Instruction, int] = {}
    for block, depth in fixpoint(cfg.rpo, lambda b: b.successors, behind, None).items():
        for call in reversed(changes[block]):
            if depth is None or depth == _DIFFERS:
                break
            depth -= _CHANGES[callee_name(call)]
            found[call] = depth
    return found


def _bases(module: Module, name: str) -> list[str]:
    known = defined_bases(module, name)
    if known is not None:
        # At another address, the handler would have to be given that.
        return [b.type for b in known if not b.is_virtual and b.offset == 0]
    if name in _OF_LIBCXX:
        return [_OF_LIBCXX[name]]
    if name.startswith(_STANDARD):
        plain = name.removeprefix(_STANDARD).lstrip("0123456789")
        base = _BASES.get(plain)
        return [f"{_STANDARD}{len(base)}{base}" if base != "exception" else f"{_STANDARD}9exception"] if base else []
    return []
