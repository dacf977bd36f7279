"""C++ exceptions as values: which `catch` an exception of a known type arrives at, and which handlers are open where.

Types are their `_ZTI...` globals. Where a type is defined in the module its bases are read from there, for the standard
library's they are known. Where it is not known whether a handler takes an exception, the kernel fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.transform.class_hierarchy import Base, defined_bases, tables

_BASES = {
    "logic_error": "exception", "runtime_error": "exception", "bad_alloc": "exception", "bad_cast": "exception",
    "bad_typeid": "exception", "bad_exception": "exception", "bad_function_call": "exception",
    "domain_error": "logic_error", "invalid_argument": "logic_error", "length_error": "logic_error",
    "out_of_range": "logic_error", "range_error": "runtime_error", "overflow_error": "runtime_error",
    "underflow_error": "runtime_error", "system_error": "runtime_error",
    "bad_array_new_length": "bad_alloc", "bad_any_cast": "bad_cast",
    "bad_optional_access": "exception", "bad_variant_access": "exception",
}  # fmt: skip
_TYPE, _POINTER, _NULLPTR = "_ZTI", "_ZTIP", "_ZTIDn"
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


class Answer(Enum):
    """Where it is not an offset at which an exception is caught."""

    PASSES = "the exception goes on to the next clause"
    UNKNOWN = "nobody knows"


def caught_at(module: Module, thrown: str | None, clause: str) -> int | Answer:
    """Where in an object of a type, or from where a pointer leads on, there is what a `catch` of another type takes: at
    its own start, or where a public base lies of which it has one ([except.handle] of the C++ standard)."""
    if thrown is None:
        return Answer.UNKNOWN
    if thrown == clause:
        return 0
    if not clause.startswith(_POINTER):
        return _base_at(module, thrown, clause, is_whole=True)
    if not thrown.startswith(_POINTER):
        return Answer.UNKNOWN if thrown == _NULLPTR else Answer.PASSES
    words, pointee = _qualified(thrown)
    wanted, target = _qualified(clause)
    if not words <= wanted:
        return Answer.PASSES
    if target in (pointee, "v"):
        return Answer.PASSES if pointee.startswith("F") and target == "v" else 0
    if pointee.startswith("P") or target.startswith("P"):
        return Answer.UNKNOWN
    return _base_at(module, f"{_TYPE}{pointee}", f"{_TYPE}{target}", is_whole=False)


def _qualified(pointer: str) -> tuple[frozenset[str], str]:
    """The qualifiers of what a pointer leads to, and the type of that."""
    rest = pointer.removeprefix(_POINTER)
    pointee = rest.lstrip("rVK")
    return frozenset(rest.removesuffix(pointee)), pointee


def _base_at(module: Module, type_: str, wanted: str, *, is_whole: bool) -> int | Answer:
    """The offset of a base in a class; `is_whole`: an object of it is no part of another one, so that it is known where
    virtual bases lie. (Of those of whom that is not known, None stands for the place.)"""
    found: dict[int | None, bool] = {}
    is_known = True
    pending: list[tuple[str, int | None, bool]] = [(type_, 0, True)]
    while pending:
        here, at, is_public = pending.pop()
        if here == wanted:
            found[at] = found.get(at, False) or is_public
        bases = _bases(module, here)
        is_known &= bases is not None
        for base in bases or ():
            offset: int | None = base.offset
            if base.is_virtual:
                offset = None if at is None or not is_whole else _virtual_offset(module, type_, at, base.offset)
            place = None if at is None or offset is None else at + offset
            pending.append((base.type, place, is_public and base.is_public))
    # A class that the program does not have is no child of one that it has.
    if None in found or not (is_known or defined_bases(module, wanted) is not None):
        return Answer.UNKNOWN
    return next((at for at in found if at is not None and len(found) == 1 and found[at]), Answer.PASSES)


def _virtual_offset(module: Module, type_: str, part: int, word: int) -> int | None:
    for table in tables(module):
        if table.type == type_ and table.part == part and table.variable.name[4:] == type_[4:]:
            return table.virtual_offset(word)
    return None


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


def _bases(module: Module, name: str) -> list[Base] | None:
    """The direct bases of a type; None where nobody knows them."""
    known = defined_bases(module, name)
    if known is not None:
        return known
    if name in _OF_LIBCXX:
        return [Base(_OF_LIBCXX[name], 0)]
    plain = name.removeprefix(_STANDARD).lstrip("0123456789")
    if name.startswith(_STANDARD) and (plain in _BASES or plain == "exception"):
        base = _BASES.get(plain)
        return [Base(f"{_STANDARD}{len(base)}{base}", 0)] if base else []
    is_class = name.removeprefix(_TYPE).startswith(("N", "S", *"123456789"))
    return None if is_class else []
