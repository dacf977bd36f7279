"""Front ends: from sources to a Program. Languages are rows of the table in `source_set`."""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.constant_memory import with_constants
from jax_enzyme.frontends.gathering import Flags, gather
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.shared_libraries import Libraries, linked, shared_libraries
from jax_enzyme.frontends.source import Language, identify
from jax_enzyme.frontends.source_set import FRONTENDS, Blas, SourceSet
from jax_enzyme.signature import Signature

__all__ = [
    "FRONTENDS",
    "Blas",
    "Flags",
    "Language",
    "Libraries",
    "Program",
    "SourceSet",
    "linked",
    "load",
    "load_function",
    "shared_libraries",
    "source_set",
    "with_constants",
]


def source_set(
    source: object,
    lang: str | None = None,
    flags: Flags = (),
    compile_commands: object = None,
    blas: Blas = "rules",
) -> SourceSet:
    """The set that a source, or a sequence of them, stands for. Raises CompileError."""
    return SourceSet(gather(source, lang, flags, compile_commands), blas)


def load(source: object, symbol: str | None = None, lang: str | None = None, flags: Sequence[str] = ()) -> Program:
    """The program of a function of a source, as `source_set` takes them. Raises CompileError."""
    return source_set(source, lang, flags).program(symbol)


def load_function(
    function: object,
    symbol: str | None,
    lang: str | None,
    flags: Flags,
    signature: Signature,
    *,
    as_written: bool = False,
) -> tuple[Program, Signature]:
    """The program of a Python function, compiled for the types of the signature. The signature in the result has, at
    its end, what the program takes besides. `as_written`: for the checking mode, which tells of lines."""
    if flags:
        raise CompileError(f"a Python function is not compiled with flags: {' '.join(flags)}", None, "leave flags= out")
    from jax_enzyme.frontends.numba import load_numba  # most kernels are no Python functions
    from jax_enzyme.frontends.numba_cuda import is_for_cuda, load_numba_cuda

    identified = identify(function, lang or ("cuda" if is_for_cuda(function) else None))
    if identified.lang == "cuda":
        return load_numba_cuda(identified, symbol, signature)
    return load_numba(identified, symbol, signature, as_written=as_written)
