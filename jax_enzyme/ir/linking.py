"""Completes a module with functions of a library: LLVM's linker, over texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import llvmlite.binding as llvm

_TARGET = re.compile(r'^target (?:datalayout|triple) = "[^"]*"\n', re.M)
_NAMED_METADATA = re.compile(r"^!llvm\.(?:module\.flags|ident)[^\n]*\n", re.M)
_EXTERNAL = re.compile(r"^define (?!internal\b|linkonce_odr\b)(?:weak_odr |weak )?(?:dso_local )?", re.M)


def link(program: str, libraries: Sequence[str]) -> str:
    """The program, and of each library the functions that it calls, directly or not, and does not define. RuntimeError
    where LLVM finds that the two do not go together."""
    context = llvm.create_context()
    module = llvm.parse_assembly(program, context)
    target = "".join(_TARGET.findall(program))
    for library in libraries:
        plain = _NAMED_METADATA.sub("", _TARGET.sub("", library))
        # LLVM takes functions of this linkage only where something refers to them.
        optional = _EXTERNAL.sub("define linkonce_odr ", plain)
        module.link_in(llvm.parse_assembly(target + optional, context))
    return str(module)
