"""Rust, through rustc. The kernel is a function, by its path, or a `#[no_mangle] pub extern "C" fn`."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.source import AS_WRITTEN, Source

AS_MODULES = (
    # As optimised code is written, but without LLVM's passes; one module; a panic is an abort; small functions, which
    # rustc leaves to the crates that call them, are there as well.
    "-Copt-level=3", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebuginfo=2",
    "-Clink-dead-code",
)  # fmt: skip
"""Flags for IR that can be differentiated."""
_ARGUMENTS = (
    "--crate-type=lib", "--emit=llvm-ir={output},dep-info={dependencies}", "--out-dir={folder}", *AS_MODULES,
    "--color=never",
    "{flags}", "{source}",
)  # fmt: skip
_CHECKED = ("-Coverflow-checks=on",)
"""Of sums, products and shifts that overflow: Rust calls that a mistake, and leaves it out of what is optimised."""
_OF_A_MODULE = b"; ModuleID"
"""How IR starts that rustc has written."""


def rustc() -> toolchain.Tool:
    """The compiler. CompileError where there is none."""
    return toolchain.program(("rustc",), "Rust", "install it from https://rustup.rs")


@cache
def host() -> str:
    """This machine, as rustc names it."""
    command = [*rustc().command, "--version", "--verbose"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))


def compile_rust(source: Source, flags: Sequence[str]) -> str:
    """The IR of a crate by its root, or of one that cargo has had compiled."""
    if source.contents.startswith(_OF_A_MODULE):
        return toolchain.portable(source.text)
    own = [
        f"--{key}={value}" for key, value in _crate(source).items() if not any(f.startswith(f"--{key}") for f in flags)
    ]
    others = [*_CHECKED, *(flag for flag in flags if flag != AS_WRITTEN)] if AS_WRITTEN in flags else flags
    return toolchain.compile_cached(source, toolchain.Recipe(rustc(), (*own, *_ARGUMENTS)), others)


def _crate(source: Source) -> dict[str, str]:
    """The name and the edition of a crate: as its text says, as its Cargo.toml says, or as is usual."""
    package: dict[str, object] = {}
    if source.path is not None and source.path.name == "lib.rs":
        near = [folder / "Cargo.toml" for folder in source.path.resolve().parents[:2]]
        with suppress(StopIteration, OSError, ValueError):
            text = next(file for file in near if file.is_file()).read_text()
            package = tomllib.loads(text).get("package", {})
    told = re.search(rb'^#!\[crate_name\s*=\s*"(\w+)"\]', source.contents, re.MULTILINE)
    name = told[1].decode() if told else str(package.get("name", "kernel")).replace("-", "_")
    edition = package.get("edition", "2015" if package else "2021")
    return {"crate-name": name, "edition": edition if isinstance(edition, str) else "2021"}


@cache
def library_folder() -> Path | None:
    """Where Rust's standard library is; None where it is not installed."""
    try:
        command = [*rustc().command, "--print", "target-libdir"]
        return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    except (CompileError, OSError, subprocess.CalledProcessError):
        return None


@cache
def rust_library() -> ctypes.CDLL | None:
    """Rust's standard library, loaded, for what a kernel calls of it without being differentiated (output); None where
    it is not installed. Its names hold a digest that is the compiler's own."""
    folder = library_folder()
    found = [] if folder is None else sorted(folder.glob("libstd-*.so"))
    try:
        return ctypes.CDLL(str(found[0])) if found else None
    except OSError:
        return None
