"""Signatures from debug information: suggested to people, or filled in where they say only what it lacks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from jax_enzyme.errors import ArgumentError, JaxEnzymeError
from jax_enzyme.frontends import Flags, Language, Program, source_set
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.arguments import check_names, checked_flags
from jax_enzyme.signature.parser import parse_shapes


def suggest_signature(
    source: object = None,
    symbol: str | None = None,
    *,
    lang: Language | None = None,
    flags: Flags = (),
    compile_commands: str | os.PathLike[str] | None = None,
) -> str:
    """The signature of a function, as its debug information and its code tell it.

        >>> source = "double dot(int n, const double *x, const double *y) {"
        >>> source += " double s = 0; for (int i = 0; i < n; i++) s += x[i] * y[i]; return s; }"
        >>> print(je.suggest_signature(source, "dot", lang="c"))
        n: i32, x: f64[n], y: f64[n] -> f64  # guessed: shapes of x, y

    Types are those of the source. Shapes are guessed from the places that the function touches, directions from what it
    writes, and whether it reads it before: a comment at the end says where. `?` stands for what is not found, and has
    to be filled in. Parameters: as those of `je.kernel`. Raises CompileError as that does, and SignatureError where the
    source has no debug information.
    """
    from jax_enzyme.codegen.suggestion import suggested  # LLVM takes a while to load

    try:
        check_names(symbol, lang)
        if callable(source):
            raise ArgumentError(
                "a Python function has no types before its signature",
                getattr(source, "__name__", None),
                'give a whole signature: "n: i64, x: f64[n], out y: f64[n]"',
            )
        return suggested(source_set(source, lang, checked_flags(flags), compile_commands, "rules").program(symbol, ()))
    except JaxEnzymeError as error:
        raise compat.at_the_call(error) from None


def completed_signature(program: Program, shapes: str, out: str | Sequence[str], inout: str | Sequence[str]) -> str:
    """The signature of a function, of which the caller gives shapes and what comes out. SignatureError where that is
    not enough."""
    from jax_enzyme.codegen.suggestion import Given, suggested  # LLVM takes a while to load

    return suggested(program, Given(parse_shapes(shapes), _names(out), _names(inout)))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in listed if name.strip())
