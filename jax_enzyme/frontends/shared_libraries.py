"""Shared libraries that the user names for functions that no source defines: `libraries=("libopenblas.so",)`.

A program keeps names, never addresses: each process that runs it opens the libraries again, once. A name without a
folder is the loader's to find, there and then; a file is known by its absolute path.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from collections.abc import Iterable, Sequence
from ctypes.util import find_library
from functools import cache
from pathlib import Path

from jax_enzyme.errors import CompileError

Libraries = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""Names or paths; one of them stands for itself."""

# Whatever these libraries define is for the kernels that name them, and replaces nothing for anybody else. macOS links
# kernels to what the whole process sees.
_MODE = ctypes.RTLD_GLOBAL if sys.platform == "darwin" else ctypes.RTLD_LOCAL
_ABSENT = re.compile(r"cannot open shared object file: No such file|no such file")
# A text that stands for a library where programs are linked: `INPUT(libmpi.so.12)`.
_SCRIPT = re.compile(rb"\s*(/\*.*?\*/\s*)*(OUTPUT_FORMAT\s*\([^)]*\)\s*)?(?:INPUT|GROUP)\s*\(\s*([^\s)]+)", re.DOTALL)
_SCRIPT_SIZE = 4096
_IDENTITY = struct.Struct("<16sHH")
_SHARED_OBJECT = 3
_MACHINES = {3: "x86 (32 bits)", 21: "ppc64", 40: "arm (32 bits)", 62: "x86-64", 183: "aarch64", 243: "riscv"}


def shared_libraries(given: Iterable[str | os.PathLike[str]], folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """What a program keeps of libraries that the user named. Files are looked for in the working directory, and in
    `folders`, those of the sources. CompileError where one is not there or cannot be opened."""
    return tuple(dict.fromkeys(_kept(library, folders) for library in given))


@cache
def opened(name: str) -> ctypes.CDLL:
    """A library that a program names, in this process; CompileError where it is not there or cannot be opened."""
    if os.sep in name:
        return _opened_file(Path(name))
    found = _found(name)
    if found is None:
        raise _not_there(name, _places())
    return found


def linked(flags: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags without those that name libraries for a linker, and these, as names or paths: `-lname` is `libname.so` in a
    folder of `-L`, or by name; `-l:name` is `name`. `-L` stays: Rust's compiler reads it."""
    words, rest, names, folders = iter(flags), list[str](), list[str](), list[str]()
    for word in words:
        if word.startswith("-l") and "=" not in word:
            name = word[2:] or next(words, "")
            names.append(name[1:] if name.startswith(":") else f"lib{name}.so")
            continue
        rest.append(word)
        if word.startswith("-L"):
            folders.append(word[2:])
    files = [[os.path.join(folder, name) for folder in folders if folder] for name in names]
    return tuple(rest), tuple(next(filter(os.path.exists, at), name) for name, at in zip(names, files, strict=True))


def _kept(library: str | os.PathLike[str], folders: Sequence[Path]) -> str:
    name = os.fspath(library)
    by_name = isinstance(library, str) and os.sep not in name
    if by_name and _found(name) is not None:
        return name
    places = [os.path.abspath(folder / name) for folder in dict.fromkeys((Path.cwd(), *folders))]
    file = next(filter(os.path.exists, places), None)
    if file is None:
        raise _not_there(name, [*_places(), *places] if by_name else places)
    opened(file)
    return file


def _places() -> list[str]:
    """Where libraries are looked for by name."""
    return ["where the loader looks (LD_LIBRARY_PATH, ldconfig -p)", str(Path(sys.prefix, "lib"))]


def _found(name: str) -> ctypes.CDLL | None:
    """What the loader, or the Python environment, has by a name; None where neither has any."""
    try:
        return ctypes.CDLL(name, mode=_MODE)
    except OSError as error:
        first = str(error)
    stem, dot, version = name.removeprefix("lib").partition(".so")
    # `libm.so` may be a text for linkers; what they would take is what ctypes finds by "m".
    meant = None if version else find_library(stem)
    if meant is not None:
        return _loaded(meant, name)
    file = Path(sys.prefix, "lib", name if dot else f"lib{stem}.so")
    if file.is_file():
        return _opened_file(file)
    if _ABSENT.search(first) and name in first.partition(":")[0]:
        return None
    raise _unfit(name, first)


def _opened_file(file: Path) -> ctypes.CDLL:
    if not file.exists():
        raise _not_there(str(file), [str(file)])
    if file.is_dir():
        raise CompileError("a folder is no shared library", str(file), "name the file in it, whose name ends in .so")
    with file.open("rb") as stream:
        head = stream.read(_SCRIPT_SIZE)
    script = _SCRIPT.match(head)
    if script is not None:
        meant = os.fsdecode(script[3]).removeprefix("-l")
        return opened(str(file.parent / meant) if (file.parent / meant).exists() else meant)
    if sys.platform != "darwin":
        _check_format(file, head)
    return _loaded(str(file), str(file))


def _loaded(name: str, place: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name, mode=_MODE)
    except OSError as error:
        raise _unfit(place, str(error)) from None


def _check_format(file: Path, head: bytes) -> None:
    """CompileError, in better words than the loader's, where a file is no shared library of this machine."""
    if head.startswith(b"!<arch>"):
        raise CompileError(
            "a static library cannot be opened as a shared one",
            str(file),
            "make a shared one of it: cc -shared -o libname.so -Wl,--whole-archive libname.a; or give it among the "
            "sources, if it holds LLVM bitcode",
        )
    if not head.startswith(b"\x7fELF") or len(head) < _IDENTITY.size:
        raise CompileError("this file is no shared library", str(file), "libraries= takes libraries; sources go first")
    identity, kind, machine = _IDENTITY.unpack_from(head)
    with open(sys.executable, "rb") as stream:
        own_identity, _, own_machine = _IDENTITY.unpack(stream.read(_IDENTITY.size))
    if machine != own_machine or identity[4:6] != own_identity[4:6]:
        raise CompileError(
            f"the library is for another processor, {_machine(machine)}: this process runs on {_machine(own_machine)}",
            str(file),
            "build it for this machine",
        )
    if kind != _SHARED_OBJECT:
        raise CompileError(
            "this file is machine code that is no shared library", str(file), "link it: cc -shared -o libname.so name.o"
        )


def _machine(number: int) -> str:
    return _MACHINES.get(number, f"number {number} of ELF's")


def _not_there(name: str, looked: Sequence[str]) -> CompileError:
    return CompileError(
        f"there is no shared library `{name}`",
        f"looked for: {', '.join(looked)}",
        "install it, give the path of its file, or leave it out where nothing is called of it (BLAS and LAPACK come "
        "from SciPy). A program that was stored looks by the same name or path in the process that loads it",
    )


def _unfit(name: str, said: str) -> CompileError:
    remedy = "see what `ldd` says of it"
    if _ABSENT.search(said):
        remedy = "it needs another library, which the loader does not find: name that before it, or set LD_LIBRARY_PATH"
    elif "undefined symbol" in said:
        remedy = "link it with the library that has this: cc -shared ... -lname"
    return CompileError(f"the shared library cannot be opened: {said}", name, remedy)
