"""The arguments of `je.kernel` and `je.elementwise` are of the types that they should be of, or an error says which is
not, and what it takes: what is wrong here shows much later otherwise, and looks like something else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from jax_enzyme.errors import ArgumentError, SignatureError
from jax_enzyme.frontends import linked
from jax_enzyme.options import Options
from jax_enzyme.signature import Signature
from jax_enzyme.signature.formals import Formal, Null, Plain, Record


def check_names(symbol: object, lang: object) -> None:
    """Raises ArgumentError where a symbol or a language is no string."""
    if symbol is not None and not isinstance(symbol, str):
        raise _wrong("symbol", "the name of a function in the source", symbol, 'symbol="energy"')
    if lang is not None and not isinstance(lang, str):
        raise _wrong("lang", "the name of a language", lang, 'lang="c"')


def checked_flags(flags: object) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """The flags of compilers, or of each of several sources; ArgumentError where they are none."""
    if not isinstance(flags, Mapping):
        return _flags(flags)
    entries: dict[object, object] = dict(flags)
    found = {key: _flags(given) for key, given in entries.items() if isinstance(key, str)}
    if len(found) != len(entries):
        raise _wrong("flags", "a dictionary by languages, names or patterns", flags, 'flags={"c": ("-DNDEBUG",)}')
    return found


def _flags(flags: object) -> tuple[str, ...]:
    what, example = "a sequence of strings", 'flags=("-DNDEBUG",)'
    if isinstance(flags, str):
        raise _wrong("flags", what, flags, f"flags={tuple(flags.split())!r}")
    if not isinstance(flags, Iterable):
        raise _wrong("flags", what, flags, example)
    listed: tuple[object, ...] = tuple(flags)
    found = tuple(flag for flag in listed if isinstance(flag, str))
    if len(found) != len(listed):
        raise _wrong("flags", what, listed, example)
    return found


def without_links(
    flags: tuple[str, ...] | dict[str, tuple[str, ...]],
) -> tuple[tuple[str, ...] | dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Flags without those that name shared libraries for a linker (`-lname`), and these libraries."""
    if not isinstance(flags, dict):
        return linked(flags)
    parts = {key: linked(given) for key, given in flags.items()}
    return {key: rest for key, (rest, _) in parts.items()}, tuple(one for _, found in parts.values() for one in found)


def checked_libraries(libraries: object) -> tuple[str | os.PathLike[str], ...]:
    """The names and paths of shared libraries; ArgumentError where they are none."""
    listed: tuple[object, ...] = ()
    if isinstance(libraries, str | os.PathLike):
        listed = (libraries,)
    elif isinstance(libraries, Iterable) and not isinstance(libraries, bytes | Mapping):
        listed = tuple(libraries)
    else:
        raise _wrong("libraries", _OF_LIBRARIES, libraries, _TO_LIBRARIES)
    found = tuple(one for one in listed if isinstance(one, str | os.PathLike) and os.fspath(one))
    if len(found) != len(listed):
        raise _wrong("libraries", _OF_LIBRARIES, libraries, _TO_LIBRARIES)
    return found


def checked_args(args: object) -> tuple[Any, ...]:
    """The arguments of a kernel, as a tuple; ArgumentError for an array, or what is no kernel's arguments."""
    if not isinstance(args, tuple | list):
        given = type(args).__name__
        raise ArgumentError(f"args is a tuple of the kernel's arguments, not {given}", None, "for example (x,)")
    listed: Sequence[Any] = args
    return tuple(listed)


def checked_options(options: object) -> Options:
    """Options, or the default ones for None; ArgumentError for all else."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise _wrong("options", "a je.Options", options, 'options=je.Options(checkpoint="sqrt")')
    return options


def checked_constants(constants: Mapping[str, object], *, of_library: bool = False) -> dict[str, int]:
    """The constants of the signature, as Python's integers; ArgumentError where one is no integer, or was meant as an
    option. `of_library`: of a kernel of a library, which has the options for sources itself."""
    found: dict[str, int] = {}
    options = [name for name in _OPTIONS if not (of_library and name in _OF_SOURCES)]
    for name, value in constants.items():
        if not isinstance(value, bool) and isinstance(value, Integral):
            found[name] = int(value)
        else:
            near = get_close_matches(name, options, 1)
            remedy = f"did you mean `{near[0]}=`?" if near else "constants of a signature are integers: n=3"
            if of_library and name in _OF_SOURCES:
                remedy = f"it is about the sources: je.library(..., {name}={value!r})"
            called = "the kernel of a library" if of_library else "je.kernel"
            raise ArgumentError(f"{called} has no argument `{name}`", f"{name}={value!r}", remedy)
    return found


def check_formals(signature: Signature, what: str) -> None:
    """Raises SignatureError for structures and arrays of pointers where there can be none; `what` is what has none."""
    if signature.formals or signature.structure is not None:
        raise SignatureError(
            f"structures, arrays of pointers and the like are for compiled code on the CPU, and this is {what}",
            str(signature),
            "give the function arrays and numbers",
        )


def check_launched(signature: Signature) -> None:
    """Raises SignatureError for what a CUDA kernel cannot be given."""
    wrong = [formal.text("in") for formal in signature.formals if not _is_of_data(formal)]
    if signature.structure is not None:
        wrong.append(f"-> {signature.structure.braces}")
    if not wrong:
        return
    raise SignatureError(
        f"`{wrong[0]}`: a CUDA kernel takes arrays, numbers, structures of these and pointers to them",
        str(signature),
        "write a host function that allocates, copies and launches: it is a kernel of the CPU as it stands",
    )


def _is_of_data(formal: Formal) -> bool:
    return all(map(_is_of_data, formal.members)) if isinstance(formal, Record) else isinstance(formal, Plain | Null)


_OF_LIBRARIES, _TO_LIBRARIES = "a sequence of names or paths of shared libraries", 'libraries=("libopenblas.so",)'
_OF_SOURCES = ("lang", "flags", "compile_commands", "blas", "libraries")
_OPTIONS = (
    *_OF_SOURCES,
    "shapes",
    "out",
    "inout",
    "rules",
    "options",
    "order",
    "grid",
    "block",
    "shared",
    "signature",
    "symbol",
)


def _wrong(name: str, takes: str, given: object, example: str) -> ArgumentError:
    return ArgumentError(f"{name}= is {takes}, not {given!r}", None, f"for example {example}")
