"""LLVM IR itself: text or bitcode of LLVM 22 or older."""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.toolchain import portable
from jax_enzyme.ir import reader, writer


def read_ir(source: Source, flags: Sequence[str]) -> str:
    """The module in the form that LLVM 22 prints. Both forms are accepted for `.ll` and `.bc`: contents decide."""
    if flags:
        raise CompileError(f"LLVM IR is not compiled: the flags {' '.join(flags)} mean nothing", source.name)
    is_text = not source.contents.startswith((b"BC", b"\xde\xc0"))
    try:
        module = reader.read(source.contents.decode() if is_text else source.contents)
    except CompileError as error:
        raise CompileError(error.cause, error.place or source.name, error.remedy) from None
    except (RuntimeError, ValueError) as error:
        raise CompileError(
            f"this is no LLVM IR: {error}", source.name, "LLVM 22 or older, as `clang -S -emit-llvm`"
        ) from None
    return portable(writer.to_text(module))
