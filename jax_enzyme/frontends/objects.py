"""LLVM bitcode inside object files and static libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import BITCODE_MAGIC, Source
from jax_enzyme.ir.foreign import embedded_bitcode

OBJECTS = frozenset((".o", ".obj", ".lo"))
ARCHIVES = frozenset((".a", ".lib", ".rlib"))
SHARED = frozenset((".so", ".dylib", ".dll"))
_ARCHIVE_MAGIC = b"!<arch>\n"
_THIN_MAGIC = b"!<thin>\n"
_HEADER = 60
_REMEDY = (
    "pass the sources, or compile them to bitcode: clang and flang with -flto or -fembed-bitcode, "
    "rustc with --emit=llvm-bc"
)


def read_object(path: Path) -> Source:
    """The bitcode of an object file. CompileError where it has none."""
    return _bitcode([(str(path), path.read_bytes())], path)[0]


def read_archive(path: Path) -> list[Source]:
    """The bitcode of the members of a static library. CompileError where one has none."""
    contents = path.read_bytes()
    if contents.startswith(_THIN_MAGIC):
        raise CompileError("this is a thin archive: it names its members, and does not hold them", str(path), _REMEDY)
    if not contents.startswith(_ARCHIVE_MAGIC):
        raise CompileError("this is no static library: it does not start as one", str(path), _REMEDY)
    try:
        members = list(_members(contents))
    except ValueError:  # a length or a place that is no number
        raise CompileError(
            "the static library is damaged: a member does not start as one", str(path), _REMEDY
        ) from None
    found = _bitcode([(f"{path}({name})", data) for name, data in members], path)
    if not found:
        raise CompileError("the static library has no members", str(path), _REMEDY)
    return found


def refuse_shared(path: Path) -> CompileError:
    """What is said of a shared library among the sources."""
    return CompileError("a shared library holds machine code, which has no derivative", str(path), _REMEDY)


def _bitcode(objects: Sequence[tuple[str, bytes]], path: Path) -> list[Source]:
    """The bitcode that object files, each with its name, are or have inside."""
    inside = iter(embedded_bitcode([c for _, c in objects if not c.startswith(BITCODE_MAGIC)]))
    found: list[Source] = []
    for name, contents in objects:
        held = contents if contents.startswith(BITCODE_MAGIC) else next(inside)
        if isinstance(held, RuntimeError):
            raise CompileError(f"this is no object file: {held}", name, _REMEDY)
        if not held:
            raise CompileError("the object file holds machine code only, and no LLVM bitcode", name, _REMEDY)
        found.append(Source("llvm", name, held, path))
    return found


def _members(contents: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the members of an archive, in the formats of GNU and BSD, less its own tables."""
    position, long_names = len(_ARCHIVE_MAGIC), b""
    while position + _HEADER <= len(contents):
        header = contents[position : position + _HEADER]
        name, size = header[:16].decode(errors="replace").rstrip(), int(header[48:58])
        data = contents[position + _HEADER : position + _HEADER + size]
        position += _HEADER + size + size % 2
        if name == "//":
            long_names = data
            continue
        if name.startswith("#1/"):
            length = int(name[3:])
            name, data = data[:length].rstrip(b"\0").decode(errors="replace"), data[length:]
        elif name.startswith("/") and name[1:].isdigit():
            name = long_names[int(name[1:]) :].partition(b"/\n")[0].decode(errors="replace")
        name = name.removesuffix("/")
        if name not in ("", "/", "/SYM64", "__.SYMDEF", "__.SYMDEF SORTED", "lib.rmeta"):
            yield name, data
