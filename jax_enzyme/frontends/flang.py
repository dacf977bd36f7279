"""Fortran, through LLVM's flang. A subroutine `f` outside a module has the symbol `f_`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jax_enzyme.classes import dataclass
from jax_enzyme.frontends import fortran_modules, toolchain
from jax_enzyme.frontends.fortran_arguments import descriptions, note_arguments
from jax_enzyme.frontends.fortran_moves import name_plain_moves
from jax_enzyme.frontends.fortran_types import name_types
from jax_enzyme.frontends.openmp import of_a_version, on_the_host
from jax_enzyme.frontends.runtime_library import LARGE
from jax_enzyme.frontends.source import AS_WRITTEN, Source
from jax_enzyme.ir import linking
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.passes import optimised_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.openmp import make_serial

_FORMAT = "12"
"""Changes whenever `finish` would give other IR."""

AS_LOWERED = "; as lowered\n"
"""In front of IR that is not `finished`: of large modules that is done to the part that somebody needs."""
_OPENMP = "@__kmpc_"
_ARGUMENTS = (
    "-S", "-emit-llvm", "-J", "{folder}",
    "{flags}",
    # flang's own passes at -O2 remove array temporaries. LLVM's come later: see `_WRAPS`.
    "-O2", "-mllvm", "-opt-bisect-limit=0", "-mllvm", "-opt-bisect-verbose=0",
    "-g", "{source}", "-o", "{output}",
)  # fmt: skip
_MODULES_ALONE = ("-fsyntax-only", "-J", "{folder}", "{flags}", "{source}")
_FIXED = (".f", ".for", ".ftn", ".fpp")
_INCLUDE = Path(__file__).parent / "fortran_include"
_MPI = frozenset({"mpi", "mpi_f08"})
"""Modules that MPI's libraries come with, as the compiler's own module files: those of gfortran are of no use here."""
_WRAPS, _DOES_NOT = ("nuw", "nsw"), ("nsw",)
"""flang 22 says that adding n to what is left of a negative shift, in `cshift(x, -1)`, does not wrap as an unsigned
number, and LLVM takes it at its word: the result is wrong. So additions lose that word before any pass sees them."""


def flang() -> toolchain.Tool:
    """The compiler. CompileError where there is none."""
    return toolchain.program(("flang-22", "flang-new-22", "flang"), "Fortran", "apt install flang-22 (apt.llvm.org)")


def compile_fortran(source: Source, flags: Sequence[str]) -> str:
    """The IR of a source that uses no module of another."""
    return compile_with_modules(source, flags, {})[0]


def compile_with_modules(source: Source, flags: Sequence[str], given: toolchain.Files) -> tuple[str, toolchain.Files]:
    """The IR of a source, and the files of the modules that it defines. `given` are the files of those that it uses. IR
    that is large is left as the compiler wrote it, which a comment in front says (`AS_LOWERED`)."""
    call = _call(source, flags, given)

    def finish(ir: str) -> str:
        if len(ir) >= LARGE and _OPENMP not in ir:
            return AS_LOWERED + ir
        return finished(ir, source, flags)

    recipe = toolchain.Recipe(
        flang(), _ARGUMENTS, finish=finish, version=_FORMAT + AS_WRITTEN * (AS_WRITTEN in flags), keeps=".mod"
    )
    ir, made = call.compiled(source, recipe)
    if _OPENMP in ir:
        ir = _then(make_serial(parse(ir), source.name), flags)
    return ir, {**call.of_mpi, **made}


def finished(ir: str, source: Source, flags: Sequence[str]) -> str:
    """What is done to IR that the compiler wrote for a source, or to a part of it, before anybody else sees it."""
    module = parse(ir)
    _let_wrap(module)
    note_arguments(module, source.text, fixed=_is_fixed(source, flags))
    return to_text(module) if _OPENMP in ir else _then(module, flags)


def excerpt(ir: str, wanted: frozenset[str], defined: frozenset[str], source: Source, flags: Sequence[str]) -> str:
    """As much of IR that the compiler wrote for a source as some of what it defines needs, with what describes the
    classes of arguments."""
    described = descriptions(wanted, defined, source.text, fixed=_is_fixed(source, flags))
    return linking.excerpt(ir, wanted | described)


def _is_fixed(source: Source, flags: Sequence[str]) -> bool:
    """Whether a source is in the old form, of lines with 72 columns."""
    fixed = "-ffixed-form" in flags or (source.path or Path(source.name)).suffix.lower() in _FIXED
    return fixed and "-ffree-form" not in flags


def module_files(source: Source, flags: Sequence[str], given: toolchain.Files) -> toolchain.Files:
    """The files of the modules that a source defines, and no code: what whoever uses them needs."""
    call = _call(source, flags, given)
    recipe = toolchain.Recipe(flang(), _MODULES_ALONE, version=_FORMAT, keeps=".mod")
    return {**call.of_mpi, **call.compiled(source, recipe)[1]}


@dataclass(frozen=True)
class _Call:
    """What the compiler is given: flags, module files (those for MPI that are ours among them), and the files that it
    reads besides, None where nobody knows."""

    flags: Sequence[str]
    given: toolchain.Files
    of_mpi: toolchain.Files
    reads: Sequence[str] | None

    def compiled(self, source: Source, recipe: toolchain.Recipe) -> tuple[str, toolchain.Files]:
        return of_a_version(
            self.flags, lambda flags: toolchain.compile_beside(source, recipe, flags, self.given, self.reads)
        )


def _call(source: Source, flags: Sequence[str], given: toolchain.Files) -> _Call:
    flags = [flag for flag in flags if flag != AS_WRITTEN]
    # Module files are written beside the output, not where the user works; those that the flags name are found there.
    places = fortran_modules.folders([*flags, f"-I{_INCLUDE}"])
    of_mpi = _modules_of_mpi(source, places, given)
    given = {**of_mpi, **given}
    # Only debug information tells which arrays are passed with descriptors, and flang drops `-g` beside `-g0`.
    others = [flag for flag in places.others if flag != "-g0"]
    kept = [f"-I{folder}" for folder in places.modules]
    return _Call([*on_the_host(others), *kept], given, of_mpi, fortran_modules.read_files(source, places, given))


def _modules_of_mpi(source: Source, places: fortran_modules.Places, given: toolchain.Files) -> toolchain.Files:
    """The files of our modules for MPI, where a source uses one that neither flags nor other sources have."""
    used = fortran_modules.interface(source).needs & _MPI
    if all(f"{name}.mod" in given or fortran_modules.module_file(name, places) for name in used):
        return {}
    file = _INCLUDE / "mpi.f90"
    return compile_with_modules(Source("fortran", file.name, file.read_bytes(), file), (), {})[1]


def _let_wrap(module: Module) -> None:
    for function in module.functions.values():
        for instruction in function.instructions():
            if instruction.opcode == "add" and instruction.flags == _WRAPS:
                instruction.flags = _DOES_NOT


def _then(module: Module, flags: Sequence[str]) -> str:
    name_types(module)
    name_plain_moves(module)
    text = to_text(module)
    return text if AS_WRITTEN in flags else optimised_text(text)
