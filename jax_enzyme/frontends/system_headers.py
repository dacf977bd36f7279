"""Where the headers of C and C++ are that zig's clang reads for this machine, as arguments for the plain clang in it.

`zig c++` knows them, but does not compile CUDA; `zig clang` does, and knows no headers.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import tempfile
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain

_FORMAT = "2"
_TAKEN = ("-isystem", "-D")


@lru_cache
def system_headers(target: str = "native") -> tuple[str, ...]:
    """`--target`, `-isystem` and `-D` arguments: this machine, libc++'s headers and C's, and what configures them.
    Another `target` is named as zig names it (`x86_64-linux-gnu.2.43`), and has zig's own headers of C."""
    zig = toolchain.zig()
    cache = DiskCache.named("system-headers")
    key = digest(_FORMAT, target, zig.version, *zig.command, *platform.uname(), *platform.libc_ver())
    entry = cache.get(key)
    if entry is None:
        entry = "\n".join(_asked(zig, target)).encode()
        cache.put(key, entry)
    return tuple(entry.decode().splitlines())


def _asked(zig: toolchain.Tool, target: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="jax_enzyme-", ignore_cleanup_errors=True) as name:
        empty = Path(name) / "empty.cpp"
        empty.write_text("\n")
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": f"{name}/zig", "ZIG_LOCAL_CACHE_DIR": f"{name}/zig"}
        command = [*zig.command, "c++", "-target", target, "-x", "c++", "-E", "-v", str(empty)]
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, env=environment, cwd=name
        ).stderr
    line = next((line for line in answer.splitlines() if ' "-cc1" ' in line or " -cc1 " in line), None)
    if line is None:
        raise CompileError("zig's clang does not say where its headers are", " ".join(command), "pip install ziglang")
    words = shlex.split(line)
    pairs = list(pairwise(words))
    triple = [f"--target={value}" for option, value in pairs if option == "-triple"]
    # Folders below the one in which zig runs are relative to it.
    taken = [(o, os.path.normpath(os.path.join(name, v)) if o == "-isystem" else v) for o, v in pairs if o in _TAKEN]
    return tuple(dict.fromkeys((*triple, *(f"{option}{value}" for option, value in taken))))
