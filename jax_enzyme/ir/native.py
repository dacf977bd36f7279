"""LLVM's own modules, each of which is gone before its context.

A context frees its modules, and a module that is disposed of behind it ends the process. Each module refers to its
context, which is enough while references are counted. The cycle collector finalises the parts of a circle in any order,
though, and an error is in one with all that the functions had which it left, wherever somebody keeps it.
"""

from __future__ import annotations

import re
import weakref
from typing import TypeVar

import llvmlite.binding as llvm

Part = TypeVar("Part")

_DECLARED = re.compile(r'^(!\d+ = !DICompositeType\(.*\bDIFlagFwdDecl\b.*), identifier: "[^"\n]*"', re.M)
"""What debug information says of a class that is only declared, with its name for other modules."""


def native_from_text(text: str, context: llvm.ContextRef | None = None) -> llvm.ModuleRef:
    """The module of a text, in this context or one of its own. RuntimeError where it is none."""
    if context is None:
        context = llvm.create_context()
    elif "DIFlagFwdDecl" in text:
        # LLVM 22 gives a declaration of one module what the definition in another has, while it is still reading that,
        # and disposes of the context with parts that are gone.
        text = _DECLARED.sub(r"\1", text)
    return gone_before(context, llvm.parse_assembly(text, context))


def native_from_bitcode(code: bytes, context: llvm.ContextRef | None = None) -> llvm.ModuleRef:
    """The module of bitcode, in this context or one of its own. RuntimeError where it is none."""
    context = llvm.create_context() if context is None else context
    return gone_before(context, llvm.parse_bitcode(code, context))


def gone_before(owner: object, part: Part) -> Part:
    """The part, which is finalised before its owner. Something refers to the owner that goes with the part."""
    # What `weakref` holds is in no circle, and weak references die before anything in a circle is finalised: the
    # owner's last references are then those of the circle, which go when all of it has been finalised.
    weakref.finalize(part, _nothing, owner).atexit = False
    return part


def _nothing(_: object) -> None:
    pass
