"""What assembly at file scope defines: `__asm__(".globl round\\nround: ...")` beside a file's functions.

Nothing in LLVM IR tells of these names but the text of the assembly (`module asm`), so that an assembler says what they
are. Their code has no derivative, and a library's function of the same name is not what a linker would call.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.elf import defined_symbols
from jax_enzyme.frontends.processes import run
from jax_enzyme.frontends.toolchain import zig
from jax_enzyme.ir import linking
from jax_enzyme.ir.lexer import unescape
from jax_enzyme.ir.reader import parse

_MARK = '\nmodule asm "'
_DEVICES = ("nvptx", "amdgcn")


def has_assembly(ir: str) -> bool:
    """Whether a module has assembly at file scope."""
    return _MARK in ir


def assembled(ir: str) -> frozenset[str]:
    """The names that a module's assembly has for others. CompileError where the assembler refuses it."""
    if not has_assembly(ir):
        return frozenset()
    module = parse(ir)
    if module.triple.startswith(_DEVICES):
        return frozenset()
    return _assembled("".join(f"{unescape(line)}\n" for line in module.module_asm))


@lru_cache(maxsize=64)
def _assembled(text: str) -> frozenset[str]:
    with tempfile.TemporaryDirectory(prefix="jax_enzyme") as name:
        folder = Path(name)
        source, output = folder / "file_scope.s", folder / "file_scope.o"
        source.write_text(text)
        try:
            run((*zig().command, "cc", "-c", str(source), "-o", str(output)), folder).check_returncode()
        except subprocess.CalledProcessError as error:
            raise CompileError(f"the assembler refuses what stands at file scope: {error.stderr}") from None
        return frozenset(defined_symbols(output.read_bytes()))


def check_assembled(ir: str, roots: Collection[str], ruled: Collection[str], place: str) -> None:
    """CompileError where functions call what assembly at file scope defines, but for what the user has rules for."""
    own = assembled(ir)
    called = own & linking.names(linking.reachable(ir, roots)).needed if own else frozenset[str]()
    if name := min(called.difference(ruled), default=None):
        raise CompileError(
            f"`{name}` is defined by assembly at file scope, which has no derivative",
            place,
            "write it in the source's language; or give a rule for it (je.rule, je.inactive)",
        )
