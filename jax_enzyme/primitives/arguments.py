"""The arguments of `je.kernel` and `je.elementwise` are of the types that they should be of, or an error says which is
not, and what it takes: what is wrong here shows much later otherwise, and looks like something else."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.errors import ArgumentError
from jax_enzyme.options import Options


def check_names(symbol: object, lang: object) -> None:
    """Raises ArgumentError where a symbol or a language is no string."""
    if symbol is not None and not isinstance(symbol, str):
        raise _wrong("symbol", "the name of a function in the source", symbol, 'symbol="energy"')
    if lang is not None and not isinstance(lang, str):
        raise _wrong("lang", "the name of a language", lang, 'lang="c"')


def checked_flags(flags: object) -> tuple[str, ...]:
    """The flags of a compiler; ArgumentError where they are none."""
    what, example = "a sequence of strings", 'flags=("-DNDEBUG",)'
    if isinstance(flags, str):
        raise _wrong("flags", what, flags, f"flags=({flags!r},)")
    if not isinstance(flags, Iterable):
        raise _wrong("flags", what, flags, example)
    listed: tuple[object, ...] = tuple(flags)
    found = tuple(flag for flag in listed if isinstance(flag, str))
    if len(found) != len(listed):
        raise _wrong("flags", what, listed, example)
    return found


def checked_options(options: object) -> Options:
    """Options, or the default ones for None; ArgumentError for all else."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise _wrong("options", "a je.Options", options, 'options=je.Options(checkpoint="sqrt")')
    return options


def _wrong(name: str, takes: str, given: object, example: str) -> ArgumentError:
    return ArgumentError(f"{name}= is {takes}, not {given!r}", None, f"for example {example}")
