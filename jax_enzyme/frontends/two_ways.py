"""What is said of a file that its project compiles in two ways which differ in what a kernel needs of it: for a static
and for a shared library, with and without a macro.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.gathering import Unit


def compiled_in_two_ways(
    unit: Unit, flags: Sequence[str], symbol: str, failure: CompileError | None = None
) -> CompileError:
    """The error for a unit that other flags make something else of: of what `symbol` names, if that is known. `failure`
    is what kept it from compiling with them."""
    more = [word for word in unit.flags if word not in flags], [word for word in flags if word not in unit.flags]
    first, second = (shlex.join(words) or "nothing more" for words in more)
    differ = "that differ in what a kernel needs of it" if not symbol else f"and what `{symbol}` is depends on that"
    told = (
        f"{unit.name} is compiled in two ways, {differ}: with {first}, and with {second}"
        if any(more)
        else f"{unit.name} is compiled in two ways, {differ}: with the same flags in two orders"
    )
    if failure is not None:
        told = f"{told}; with {second} it does not compile:\n{failure.cause}"
    file = os.path.basename(unit.name)
    defined = [dict(map(_macro, words)) for words in more if all(word.startswith("-D") for word in words)]
    if len(defined) == 2 and any(defined):
        ways = [tuple(own.get(name, f"-U{name}") for name in {**defined[0], **defined[1]}) for own in defined]
        remedy = f"say which is meant, by flags of your own: flags={{{file!r}: {ways[0]}}}, or {ways[1]}"
    else:
        remedy = "flags= come behind those of the project: say there which is meant, or pass a compile_commands.json "
        remedy += "with the entries of one target alone"
    return CompileError(told, unit.name, remedy)


def _macro(word: str) -> tuple[str, str]:
    """The name of a macro, and the flag that defines it."""
    return word[2:].partition("=")[0], word
