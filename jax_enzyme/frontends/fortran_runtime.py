"""flang's own run-time library, for what a kernel calls of it without being differentiated: input and output, clocks.

flang installs it as an archive for static linking. What runs in this process needs a shared object: zig's linker makes
one, when a kernel first asks for it, and it is kept in the disk cache.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

from jax_enzyme.cache import digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.flang import flang
from jax_enzyme.frontends.processes import run
from jax_enzyme.frontends.shared_objects import load
from jax_enzyme.frontends.toolchain import zig

_ARCHIVE = "libflang_rt.runtime.a"
# What the archive itself needs, beyond libc.
_NEEDED = ("libm.so.6", "libgcc_s.so.1")
# libc keeps this one for static linking, since it needs to know which library asks.
_START = """
extern int __cxa_atexit(void (*)(void *), void *, void *);
void *__dso_handle = &__dso_handle;
int atexit(void (*f)(void)) { return __cxa_atexit((void (*)(void *))f, 0, &__dso_handle); }
"""


@cache
def fortran_library() -> ctypes.CDLL | None:
    """The library, loaded; None where flang or its archive is not installed, or linking fails."""
    try:
        tool = flang()
        archive = _archive(Path(tool.command[0]).resolve())
        if archive is None:
            return None
        for name in _NEEDED:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        status = archive.stat()
        origin = (tool.version, str(archive), str(status.st_size), str(status.st_mtime_ns), zig().version)
        return load("flang_rt", digest(_START, *origin), lambda folder: _made(archive, folder))
    except (CompileError, OSError, subprocess.CalledProcessError):
        return None


def _archive(program: Path) -> Path | None:
    found = sorted(program.parent.parent.glob(f"lib/clang/*/lib/*/{_ARCHIVE}"))
    return found[0] if found else None


def _made(archive: Path, folder: Path) -> Path:
    """The shared object with all that is in the archive, made in a folder."""
    source, start, shared = (folder / file for file in ("start.c", "start.o", "flang_rt.so"))
    source.write_text(_START)
    made = ("clang", "-c", "-fPIC", "-fvisibility=hidden", str(source), "-o", str(start))
    linked = ("ld.lld", "-shared", "-s", "--whole-archive", str(archive), str(start), "-o", str(shared))
    for words in (made, linked):
        run((*zig().command, *words), folder).check_returncode()
    return shared
