"""OpenMP: directives are compiled where the flags say so, and what they mean on one thread is what the engine sees.

Which loops their iterations may leave in any order stays with the program, as marks (`transform.openmp`). OpenMP's
own functions are in `runtime/openmp.cpp`, what compilers call for directives in `runtime/openmp_team.cpp`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from jax_enzyme.errors import CompileError
from jax_enzyme.ir.reader import ReadError, parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.openmp import make_serial

_FLAG, _VERSION = "-fopenmp", "-fopenmp-version="
_PASSES_ON = frozenset({"-Xclang", "-Xflang", "-Xpreprocessor", "-Xcompiler"})
"""Words that hand the next one to a part of the compiler."""
_NEWEST = _VERSION + "52"
"""The last version that clang 22 and flang 22 know. Of themselves they know the directives of 5.1 and of 3.1."""
_R = TypeVar("_R")


def on_the_host(flags: Sequence[str]) -> list[str]:
    """The flags, with one that says that directives are meant, however it was said: for LLVM's run-time library, whose
    calls are known here, and for no device but the host."""
    kept: list[str] = []
    found = False
    for flag in flags:
        if not flag.startswith(_FLAG) or flag.startswith((_VERSION, "-fopenmp-simd")):
            kept.append(flag)
            continue
        found = True
        if kept and kept[-1] in _PASSES_ON:
            kept.pop()
    return [*kept, _FLAG] if found else kept


def of_a_version(flags: Sequence[str], compiled: Callable[[Sequence[str]], _R]) -> _R:
    """What a compiler makes with the flags. Where it does not know a directive or a clause, it is told of the newest
    version; not before, since that one has no longer all that older ones have."""
    try:
        return compiled(flags)
    except CompileError as error:
        known = _FLAG in flags and not any(flag.startswith(_VERSION) for flag in flags)
        if not known or not any(name in str(error) for name in ("OpenMP", "omp ")):
            raise
        try:
            return compiled([*flags, _NEWEST])
        except CompileError:
            raise error from None


def has_directives(flags: Sequence[str]) -> bool:
    """Whether directives mean anything with these flags, `simd` alone or all of them."""
    return any(flag.startswith(_FLAG) and not flag.startswith(_VERSION) for flag in flags)


def serial(ir: str, name: str) -> str:
    """A module with the serial meaning of OpenMP's directives. CompileError, at the user's line, for what has none."""
    try:
        module = parse(ir)
    except ReadError as error:
        # clang 22 adds arrays as if they were numbers.
        raise CompileError(
            f"the compiler wrote code that is none, as it does for `reduction(inscan, ...)` of an array: {error}",
            _place(ir, str(error), name),
            "write a loop with that clause without the directive, or over numbers of their own",
        ) from error
    made = make_serial(module, name)
    return ir if made is module else to_text(made)


def _place(ir: str, line: str, name: str) -> str:
    """Where a line of IR, which nobody can read, has its place in the source."""
    number = re.search(r"!dbg !(\d+)", line)
    found = number and re.search(rf"^!{number[1]} = !DILocation\(line: (\d+), column: (\d+)", ir, re.MULTILINE)
    return f"{name}:{found[1]}:{found[2]}" if found else name
