"""Rust, through rustc. The kernel is a `#[no_mangle] pub extern "C" fn`."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.source import Source

_ARGUMENTS = (
    "--crate-type=lib", "--crate-name=kernel", "--edition=2021", "--emit=llvm-ir={output},dep-info={dependencies}",
    # As optimised code is written, but without LLVM's passes; one module; a panic is an abort.
    "-Copt-level=3", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebuginfo=2",
    "--color=never",
    "{flags}", "{source}",
)  # fmt: skip


def rustc() -> toolchain.Tool:
    """The compiler. CompileError where there is none."""
    return toolchain.program(("rustc",), "Rust", "install it from https://rustup.rs")


def compile_rust(source: Source, flags: Sequence[str]) -> str:
    return toolchain.compile_cached(source, toolchain.Recipe(rustc(), _ARGUMENTS), flags)


@cache
def rust_library() -> ctypes.CDLL | None:
    """Rust's standard library, loaded, for what a kernel calls of it without being differentiated (output); None where
    it is not installed. Its names hold a digest that is the compiler's own."""
    try:
        command = [*rustc().command, "--print", "target-libdir"]
        folder = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        found = sorted(Path(folder).glob("libstd-*.so"))
        return ctypes.CDLL(str(found[0])) if found else None
    except (CompileError, OSError, subprocess.CalledProcessError):
        return None
