"""What the caller of `load` gave, told apart: a file, inline text, bitcode or a Python function."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError

Language = Literal["c", "c++", "fortran", "rust", "llvm", "cuda"]

AS_WRITTEN = "-je-as-written"
"""The flag for IR that a kernel is checked in, whose mistakes are to be seen: nothing has made use of them yet."""
SUFFIXES = {
    ".c": "c",
    ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".c++": "c++", ".C": "c++",
    ".f": "fortran", ".for": "fortran", ".f90": "fortran", ".f95": "fortran", ".f03": "fortran", ".f08": "fortran",
    ".F": "fortran", ".F90": "fortran", ".F95": "fortran", ".F03": "fortran", ".F08": "fortran", ".f18": "fortran",
    ".ftn": "fortran", ".fpp": "fortran",
    ".rs": "rust",
    ".ll": "llvm", ".bc": "llvm",
    ".cu": "cuda", ".hip": "cuda",
}  # fmt: skip
"""The language of a path, by its suffix."""

_HEADERS = {".hpp": "c++", ".hh": "c++", ".hxx": "c++", ".h++": "c++", ".H": "c++", ".cuh": "cuda"}
"""That of a header which is named itself: those in folders are parts of other sources."""

INLINE_NAMES = {
    "c": "kernel.c", "c++": "kernel.cpp", "fortran": "kernel.f90", "rust": "kernel.rs", "llvm": "kernel.ll",
    "cuda": "kernel.cu",
}  # fmt: skip
"""What inline text is called in messages and debug information."""

BITCODE_MAGIC = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


@dataclass(frozen=True)
class Source:
    """`contents` are the bytes of a file, inline text or bitcode; `path` is None unless there is a file, of which they
    may be a `part`. `function` is a Python function (then there are no contents)."""

    lang: str
    name: str
    contents: bytes = b""
    path: Path | None = None
    function: Callable[..., object] | None = None
    part: bool = False

    @property
    def text(self) -> str:
        """The contents as text whose lines end in a line feed alone, wherever they were written."""
        return self.contents.decode(errors="replace").replace("\r\n", "\n")


def identify(source: object, lang: str | None) -> Source:
    """What `source` is. CompileError if it is nothing known, or a file that is not there."""
    if isinstance(source, bytes | bytearray | memoryview):
        contents = bytes(source)
        if not contents.startswith(BITCODE_MAGIC):
            raise CompileError("these bytes are no LLVM bitcode", None, "pass source text as a string, with lang=")
        return Source("llvm", "<bitcode>", contents)
    if isinstance(source, str) and not source.strip():
        raise CompileError("the source is empty", None, "pass the text of a program, or a path")
    if isinstance(source, str) and not looks_like_path(source):
        if lang is None:
            raise CompileError(
                "inline source text needs lang=", f"source starts {source[:60]!r}", 'for example lang="c"'
            )
        return Source(lang, INLINE_NAMES.get(lang, "kernel"), source.encode())
    if isinstance(source, str | os.PathLike):
        return _file(Path(os.fsdecode(source)), lang)
    if callable(source):
        return Source(lang or "numba", getattr(source, "__name__", "function"), function=source)
    raise CompileError(
        f"a source is a path, text, bitcode or a Numba function, not {type(source).__name__}", None, "see je.kernel"
    )


def looks_like_path(source: str) -> bool:
    """A string is a path unless it holds what source text has and file names do not."""
    return not any(mark in source for mark in "\n{};")


def where_it_may_be(path: Path) -> str:
    """The remedy for a path that leads nowhere, or for a text that is taken for one."""
    text = "what is meant as the text of a program has a line feed, or one of { } ;"
    return text if path.is_absolute() else f"relative paths start at {Path.cwd()}; {text}"


def _file(path: Path, lang: str | None) -> Source:
    found = lang or _HEADERS.get(path.suffix) or SUFFIXES.get(path.suffix) or SUFFIXES.get(path.suffix.lower())
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise CompileError(
            f"the source file cannot be read: {error.strerror or error}",
            str(path),
            where_it_may_be(path),
        ) from None
    if not contents.strip():
        raise CompileError("the source file is empty", str(path))
    if found is None:
        raise CompileError(
            f"the suffix {path.suffix!r} does not tell the language",
            str(path),
            'it may be either: give lang="c++" or lang="c"'
            if path.suffix == ".h"
            else f"give lang=, or a file that ends in one of {' '.join(SUFFIXES)}",
        )
    return Source(found, str(path), contents, path)
