"""Fortran, through LLVM's flang. A subroutine `f` outside a module has the symbol `f_`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.fortran_types import name_types
from jax_enzyme.frontends.openmp import on_the_host
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir.passes import optimised_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.openmp import make_serial

_ARGUMENTS = (
    "-S", "-emit-llvm",
    "{flags}",
    # flang's own passes at -O2 remove array temporaries. LLVM's come later: see `_WRAPS`.
    "-O2", "-mllvm", "-opt-bisect-limit=0", "-mllvm", "-opt-bisect-verbose=0",
    "-g", "{source}", "-o", "{output}",
)  # fmt: skip
_WRAPS = " = add nuw nsw "
_DOES_NOT = " = add nsw "
"""flang 22 says that adding n to what is left of a negative shift, in `cshift(x, -1)`, does not wrap as an unsigned
number, and LLVM takes it at its word: the result is wrong. So additions lose that word before any pass sees them."""
_MODULE_PLACES = ("-J", "-module-dir")
_READS_FILES = re.compile(
    rb"^[ \t]*#?[ \t]*(include\b|use\b(?![ \t,:]*(intrinsic\b|iso_|ieee_)))", re.IGNORECASE | re.MULTILINE
)
"""Included files and modules: flang cannot list what it read, so sources with these are compiled every time."""


def flang() -> toolchain.Tool:
    """The compiler. CompileError where there is none."""
    return toolchain.program(("flang-22", "flang-new-22", "flang"), "Fortran", "apt install flang-22 (apt.llvm.org)")


def compile_fortran(source: Source, flags: Sequence[str]) -> str:
    flags = on_the_host(flags)
    # Module files are written beside the output, not where the user works; where the flags name a place, there.
    placed = any(flag.startswith(_MODULE_PLACES) for flag in flags)
    recipe = toolchain.Recipe(flang(), _ARGUMENTS if placed else ("-J", "{folder}", *_ARGUMENTS))
    ir = toolchain.compile_cached(source, recipe, flags, cacheable=not _READS_FILES.search(source.contents))
    lines = (line.replace(_WRAPS, _DOES_NOT, 1) if line.startswith("  %") else line for line in ir.splitlines(True))
    module = make_serial(parse("".join(lines)), source.name)
    name_types(module)
    return optimised_text(to_text(module))
