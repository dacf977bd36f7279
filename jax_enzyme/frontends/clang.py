"""C and C++, through the clang of the `ziglang` package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.openmp import has_directives, of_a_version, on_the_host, serial
from jax_enzyme.frontends.source import Source

_INCLUDE, _CPP_INCLUDE = (Path(__file__).parent / name for name in ("c_include", "cpp_include"))
_CLASSES = ("-fno-standalone-debug", "-Xclang", "-fno-use-ctor-homing")
"""Classes are described where their members are used, unless a flag asks for more (`class_types`)."""
_READ = (
    # No particular CPU: the machine that runs the code is asked when it is known. zig defines NDEBUG of itself.
    # That calls of libm set `errno` keeps them from being pure: `SETS_ERRNO` is for those who look at it.
    "-mcpu=baseline", "-UNDEBUG", "-fno-math-errno", "-iquote", ".", *_CLASSES, "{flags}",
    "-O2", "-isystem", str(_INCLUDE),
)  # fmt: skip
_WRITE = (
    # What an optimiser is to see (lifetimes, type-based aliasing, no `optnone`), but not optimised yet.
    "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes",
    # Of the functions of classes only those that are used: all of them are several times as long as the code.
    "-g", "-gomit-unreferenced-methods", "-fdebug-compilation-dir=.",
    # zig adds the traps and the protector.
    "-fno-sanitize=all", "-fno-stack-protector", "-fomit-frame-pointer",
    "-fno-color-diagnostics", "-fspell-checking", "-Wno-error=date-time", "-w",
    "{source}", "-o", "{output}",
)  # fmt: skip
SETS_ERRNO = "-fmath-errno"
"""The flag by which functions of libm set `errno`."""
READS_ERRNO = "@__errno_location("
"""What stands in the IR of a source that uses `errno`."""
LIST_HEADERS = ("-Xclang", "-header-include-file", "-Xclang", "{headers}", "-Xclang", "-sys-header-deps")
"""Has clang write which headers it reads. The driver of zig takes `-M` and its like for a wish to preprocess only."""


def compile_c(source: Source, flags: Sequence[str]) -> str:
    return _compile(source, ("cc", "-x", "c"), flags)


def compile_cpp(source: Source, flags: Sequence[str]) -> str:
    return _compile(source, ("c++", "-x", "c++", "-I", str(_CPP_INCLUDE)), flags)


def _compile(source: Source, driver: tuple[str, ...], flags: Sequence[str]) -> str:
    recipe = toolchain.Recipe(toolchain.zig(), (*driver, *_READ, *LIST_HEADERS, *_WRITE))
    ir = of_a_version(on_the_host(flags), lambda flags: toolchain.compile_cached(source, recipe, flags))
    return serial(ir, source.name) if has_directives(flags) else ir
