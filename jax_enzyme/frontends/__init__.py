"""Front ends: from a source to a Program. One row in the table below per language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.clang import compile_c, compile_cpp
from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.cuda_host import load_host_function
from jax_enzyme.frontends.flang import compile_fortran
from jax_enzyme.frontends.llvm import read_ir
from jax_enzyme.frontends.numba import load_numba
from jax_enzyme.frontends.numba_cuda import is_for_cuda, load_numba_cuda
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.runtime_library import complete
from jax_enzyme.frontends.rustc import compile_rust
from jax_enzyme.frontends.source import SUFFIXES, Language, Source, identify
from jax_enzyme.frontends.symbols import choose
from jax_enzyme.signature import Signature

__all__ = ["FRONTENDS", "Language", "Program", "load", "load_kernel"]

FRONTENDS: Mapping[str, Callable[[Source, Sequence[str]], str]] = MappingProxyType(
    {
        "c": compile_c,
        "c++": compile_cpp,
        "fortran": compile_fortran,
        "rust": compile_rust,
        "llvm": read_ir,
        "cuda": compile_cuda,
    }
)
"""What turns a source of each language, with compiler flags, into the text of an LLVM module."""


def load(source: object, symbol: str | None = None, lang: str | None = None, flags: Sequence[str] = ()) -> Program:
    """The program of a source: a path, inline text with `lang`, or bitcode. Raises CompileError."""
    identified = identify(source, lang)
    frontend = FRONTENDS.get(identified.lang)
    if frontend is None:
        raise CompileError(
            f"there is no front end for the language {identified.lang!r}",
            identified.name,
            f"{_meant(identified.lang)}languages: {', '.join(FRONTENDS)}",
        )
    ir = frontend(identified, tuple(flags))
    if identified.lang == "cuda" and symbol is not None:
        found = load_host_function(identified, symbol, ir, tuple(flags))
        if found is not None:
            return found
    chosen = choose(ir, symbol, identified)
    return Program(complete(ir, chosen), chosen, identified.lang, identified.name)


def _meant(lang: str) -> str:
    """A suffix of a language, or its name in other letters."""
    low = lang.lower()
    meant = low if low in FRONTENDS else SUFFIXES.get(f".{low}")
    return f'did you mean "{meant}"? ' if meant else ""


def load_kernel(
    source: object, symbol: str | None, lang: str | None, flags: Sequence[str], signature: Signature
) -> tuple[Program, Signature]:
    """The program of a source, which may also be a Python function: that is compiled for the types of the signature.
    The signature in the result has, at its end, what the program takes besides."""
    if not callable(source):
        return load(source, symbol, lang, flags), signature
    if flags:
        raise CompileError(f"a Python function is not compiled with flags: {' '.join(flags)}", None, "leave flags= out")
    identified = identify(source, lang or ("cuda" if is_for_cuda(source) else None))
    load_function = load_numba_cuda if identified.lang == "cuda" else load_numba
    return load_function(identified, symbol, signature)
