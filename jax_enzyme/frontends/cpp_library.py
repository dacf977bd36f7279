"""libc++'s own binary, for what a kernel calls of it without being differentiated: streams, clocks, locks, text.

The `ziglang` package has its sources. They are compiled and linked when a kernel first asks for one of the names, which
takes some five seconds, and kept in the disk cache. What belongs to the language rather than to the library
(exceptions, type information, `new`) comes from the C++ run time that this process has.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jax_enzyme.cache import digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.processes import run, side_by_side
from jax_enzyme.frontends.shared_objects import load
from jax_enzyme.frontends.toolchain import zig

_TOGETHER = (
    "libcxx/src/locale libcxx/src/ios.instantiations libcxx/src/string libcxx/src/iostream libcxx/src/ios "
    "libcxx/src/charconv libcxx/src/chrono libcxx/src/ostream libcxx/src/fstream libcxx/src/system_error "
    "libcxx/src/random libcxx/src/hash libcxx/src/valarray "
    "libcxx/src/call_once libcxx/src/functional libcxx/src/stdexcept "
    "libcxx/src/any libcxx/src/optional libcxx/src/variant "
    "libcxx/src/verbose_abort libcxx/src/ryu/d2s libcxx/src/ryu/d2fixed libcxx/src/ryu/f2s "
    "libcxxabi/src/stdlib_exception libcxxabi/src/stdlib_typeinfo"
).split()  # without threads, which no kernel may start
_UNITS = (_TOGETHER, ["libcxx/src/memory"], ["libcxx/src/error_category"])
"""What is compiled as one: most of the time goes into headers, which all of them include. The last two define members
that headers have inline otherwise."""
_FLAGS = (
    "c++", "-c", "-x", "c++", "-std=c++26", "-O0", "-g0", "-fPIC", "-mcpu=baseline", "-fno-sanitize=all", "-w",
    "-DNDEBUG", "-D_LIBCPP_BUILDING_LIBRARY", "-D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
    "-D_LIBCPP_HAS_NO_PRAGMA_SYSTEM_HEADER",
)  # fmt: skip
_NEEDED = ("libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")


@cache
def cpp_library() -> ctypes.CDLL | None:
    """The library, loaded; None where its sources are not installed or do not compile."""
    try:
        for name in _NEEDED:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        return load("libcxx", digest(zig().version, *map(" ".join, _UNITS), *_FLAGS), _made)
    except (CompileError, OSError, subprocess.CalledProcessError):
        return None


def _made(folder: Path) -> Path:
    """The shared object, made in a folder."""
    tool = zig()
    library = Path(tool.command[0]).parent / "lib"
    objects = side_by_side(lambda unit: _compiled(tool.command, library, unit, folder), _UNITS)
    shared = folder / "libcxx.so"
    # Its own names come first: another library's may be of another C++ library.
    words = ("ld.lld", "-shared", "-s", "-Bsymbolic", *objects, "-o", str(shared))
    run((*tool.command, *words), folder).check_returncode()
    return shared


def _compiled(command: tuple[str, ...], library: Path, sources: Sequence[str], build: Path) -> str:
    """The object code of some of the library's files."""
    unit = build / f"{sources[0].replace('/', '-')}.cpp"
    unit.write_text("".join(f'#include "{library / source}.cpp"\n' for source in sources))
    output = unit.with_suffix(".o")
    includes = [f"-I{library / folder}" for folder in ("libcxx/src", "libcxx/libc", "libcxxabi/include")]
    run((*command, *_FLAGS, *includes, str(unit), "-o", str(output)), build).check_returncode()
    return str(output)
