"""Rust, through rustc. The kernel is a `#[no_mangle] pub extern "C" fn`."""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.source import Source

_ARGUMENTS = (
    "--crate-type=lib", "--crate-name=kernel", "--edition=2021", "--emit=llvm-ir={output},dep-info={dependencies}",
    # As optimised code is written, but without LLVM's passes; one module; a panic is an abort.
    "-Copt-level=3", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebuginfo=1",
    "--color=never",
    "{flags}", "{source}",
)  # fmt: skip


def compile_rust(source: Source, flags: Sequence[str]) -> str:
    tool = toolchain.program(("rustc",), "Rust", "install it from https://rustup.rs")
    return toolchain.compile_cached(source, toolchain.Recipe(tool, _ARGUMENTS), flags)
