"""What assembly at file scope defines: `__asm__(".globl round\\nround: ...")` beside a file's functions.

Nothing in LLVM IR tells of these names but the text of the assembly (`module asm`), so that an assembler says what they
are. Their code has no derivative, and a library's function of the same name is not what a linker would call. So are
names that stand for others beside it (`sin = cos`, `.weakref`, labels that are not exported): the assembler puts these
into the file's own calls, and the symbol table has no trace of them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.elf import defined_symbols, referenced_symbols
from jax_enzyme.frontends.processes import run
from jax_enzyme.frontends.toolchain import zig
from jax_enzyme.ir import linking
from jax_enzyme.ir.lexer import unescape
from jax_enzyme.ir.reader import parse

_MARK = '\nmodule asm "'
_DEVICES = ("nvptx", "amdgcn")
_ASKED = '.section .je.asked,"aw"'


def has_assembly(ir: str) -> bool:
    """Whether a module has assembly at file scope."""
    return _MARK in ir


def assembled(ir: str) -> frozenset[str]:
    """The names that a module's assembly has for others. CompileError where the assembler refuses it."""
    return frozenset(defined_symbols(_object(text))) if (text := _text(ir)) else frozenset()


def meant(ir: str) -> frozenset[str]:
    """The names that its assembly gives a meaning to, for the module itself."""
    if not (text := _text(ir)):
        return frozenset()
    words = "".join(c if c.isalnum() or c in "_.$" else " " for c in text).split()
    names = dict.fromkeys(word for word in words if word[0].isalpha() or word[0] == "_")
    asked = "".join(f"\n.quad {name}" for name in names)
    others = referenced_symbols(_object(f"{text}\n{_ASKED}{asked}\n"))
    return frozenset(names).difference(name.partition("@")[0] for name in others)  # `sin@GLIBC_2.2.5` is the library's


def _text(ir: str) -> str:
    if not has_assembly(ir):
        return ""
    module = parse(ir)
    return "" if module.triple.startswith(_DEVICES) else "".join(f"{unescape(line)}\n" for line in module.module_asm)


@lru_cache(maxsize=64)
def _object(text: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="jax_enzyme") as name:
        folder = Path(name)
        source, output = folder / "file_scope.s", folder / "file_scope.o"
        source.write_text(text)
        try:
            run((*zig().command, "cc", "-c", str(source), "-o", str(output)), folder).check_returncode()
        except subprocess.CalledProcessError as error:
            raise CompileError(f"the assembler refuses what stands at file scope: {error.stderr}") from None
        return output.read_bytes()


def check_assembled(ir: str, roots: Collection[str], ruled: Collection[str], place: str) -> None:
    """CompileError where functions call what assembly at file scope defines, but for what the user has rules for."""
    own = assembled(ir) | meant(ir)
    called = own & linking.names(linking.reachable(ir, roots)).needed if own else frozenset[str]()
    if name := min(called.difference(ruled), default=None):
        raise CompileError(
            f"`{name}` is defined by assembly at file scope, which has no derivative",
            place,
            "write it in the source's language; or give a rule for it (je.rule, je.inactive)",
        )
