"""Finds the kernel among the functions that sources define, and says helpfully when it is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.spelling import find, spelling

_DEFINE = re.compile(r'^define (?P<words>[^@]*)@(?:"(?P<quoted>[^"]*)"|(?P<plain>[-\w$.]+))\(', re.M)
_NOT_OURS = frozenset(
    {"internal", "private", "linkonce", "linkonce_odr", "weak_odr", "available_externally"}
)  # weak_odr and linkonce are instances of templates and inline functions
_NEAR = 5
_LISTED = 12


def external_functions(ir: str) -> list[str]:
    """The functions that a module defines for others, in order: not static ones, nor instances of templates. Where
    there are CUDA kernels, they are meant, and not the functions that they call."""
    defined = [(m["quoted"] or m["plain"], set(m["words"].split())) for m in _DEFINE.finditer(ir)]
    kernels = [name for name, words in defined if "ptx_kernel" in words]
    return kernels or [name for name, words in defined if not _NOT_OURS & words]


class NotUnique(CompileError):
    """A name that several functions have, which the cause lists."""


def choose(ir: str, symbol: str, source: Source) -> str:
    """The symbol of a function of one module. CompileError where it has none, or several of that name."""
    defined = [m["quoted"] or m["plain"] for m in _DEFINE.finditer(ir)]
    found = chosen(symbol, defined, source.name)
    if found is None:
        raise not_found(symbol, external_functions(ir), (), source.name, source.lang)
    return found


def only(external: Sequence[str], place: str) -> str:
    """The one external function. CompileError where there are several, or none."""
    if len(external) == 1:
        return external[0]
    found = f"{len(external)}: {_listed(external, external)}" if external else "none"
    raise CompileError(
        "the symbol may be left out only where the source defines exactly one external function",
        f"{place} defines {found}",
        "name the function, as the second argument",
    )


def chosen(symbol: str, defined: Sequence[str], place: str) -> str | None:
    """Which of the functions is meant; None where none is. CompileError where several are."""
    found = find(symbol, defined)
    if len(found) <= 1:
        return found[0] if found else None
    raise NotUnique(
        f"the symbol `{symbol}` is not unique: {_listed(found, defined)}",
        place,
        f'name one in full: "{_usable(found[0], defined)}" or "{_usable(found[1], defined)}"',
    )


def not_found(symbol: str, external: Sequence[str], meant: Sequence[str], place: str, lang: str) -> CompileError:
    """What is said where no function is meant, of those that are `external`; `meant` is what a compiler has found in
    the text."""
    by_name = {n: name for name in external for n in (name, spelling(name).name, str(spelling(name)))}
    near = nearest(symbol, by_name) or nearest(spelling(symbol).name.rpartition("::")[2], by_name)
    if meant and not near:
        return CompileError(f"the symbol `{symbol}` is not in the source", place, f"did you mean `{meant[0]}`?")
    places = list(dict.fromkeys(by_name[n] for n in near))
    what = (
        f"similar names: {_listed(places, external)}"
        if places
        else f"it defines {_listed(external, external) or 'no external function'}"
    )
    return CompileError(
        f"the symbol `{symbol}` is not in the source",
        f"{place}; {what}",
        f"did you mean `{_usable(places[0], external)}`?" if places else hint(lang),
    )


def nearest(symbol: str, names: Collection[str]) -> list[str]:
    """The names most like what somebody asks for."""
    # Macros that rename the functions of a library put its name before theirs, or are not defined.
    asked = symbol.lower()
    found = [n for n in names if n.lower().endswith(f"_{asked}") or asked.endswith(f"_{n.lower()}")]
    return found[:_NEAR] or difflib.get_close_matches(symbol, names, _NEAR, 0.5)


def generic_name(symbol: str, procedures: Sequence[str], defined: Sequence[str], place: str) -> CompileError:
    """What is said of a name that Fortran procedures have in common."""
    names = [_usable(found[0], defined) if len(found := find(one, defined)) == 1 else one for one in procedures]
    listed = _listed(names, defined)
    return CompileError(
        f"`{symbol}` is a generic name, of {listed}", place, f'name the procedure that is meant: "{names[0]}"'
    )


def _listed(names: Sequence[str], defined: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(_usable(name, defined) for name in names[:_LISTED]) + more


def _usable(symbol: str, defined: Sequence[str]) -> str:
    """What a function is called in its source, in as few words as name it alone; its symbol where none do."""
    whole = spelling(symbol)
    shorter = [replace(whole, arguments=None, parameters=None), replace(whole, parameters=None), whole]
    return next((text for text in map(str, shorter) if find(text, defined) == [symbol]), symbol)


def hint(lang: str) -> str:
    """What a kernel is in a language."""
    return {
        "c": "a kernel is a function that the source defines, by the name that it has there",
        "cuda": 'a kernel is a `__global__` function; `extern "C"` gives it a plain symbol',
        "c++": "name it as the source does: `solver::step`, `solver::step<double>`, `solver::step(double const*, int)`",
        "rust": 'a kernel is a function, by its path, or a `#[no_mangle] pub extern "C" fn`; generic ones need a '
        "function that calls them",
        "fortran": "name it as the source does: `step`, or `module::step`",
    }.get(lang, "a kernel is a function that the module defines")
