"""LLVM's verifier over a module, with its answer as an exception."""

from __future__ import annotations

from threading import Lock

import llvmlite.binding as llvm

from jax_enzyme.ir.module import Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.writer import has_debug_info, to_text

_READING = Lock()
"""Held while LLVM takes debug information as it is, which holds for all of the process."""
_AS_IT_IS = "-disable-auto-upgrade-debug-info"


class VerifyError(ValueError):
    """A module that breaks a rule of LLVM IR."""


def parse_checked(module: Module) -> llvm.ModuleRef:
    """LLVM's module of ours, verified by LLVM: passes may crash on what is not. Without its debug information, where it
    is that alone with which LLVM finds fault."""
    try:
        return parse_verified(to_text(module))
    except VerifyError:
        if not has_debug_info(module):
            raise
    return parse_verified(to_text(module, debug=False))


def parse_verified(text: str) -> llvm.ModuleRef:
    """LLVM's module of a text, in a context of its own, verified. Left to itself LLVM verifies what has debug
    information while it reads it, and ends the whole process if it finds fault."""
    try:
        parsed = _as_it_is(text)
        parsed.verify()
    except RuntimeError as error:
        raise VerifyError(f"LLVM rejects the module: {error}") from error
    return parsed


def _as_it_is(text: str) -> llvm.ModuleRef:
    with _READING:
        llvm.set_option("", f"{_AS_IT_IS}=true")
        try:
            return native_from_text(text)
        finally:
            llvm.set_option("", f"{_AS_IT_IS}=false")
