"""Finds the kernel among the functions of a module, and says helpfully when it is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source

_DEFINE = re.compile(r'^define (?P<words>[^@]*)@(?:"(?P<quoted>[^"]*)"|(?P<plain>[-\w$.]+))\(', re.M)
_NOT_OURS = frozenset(
    {"internal", "private", "linkonce", "linkonce_odr", "weak_odr", "available_externally"}
)  # weak_odr and linkonce are instances of templates and inline functions
_LISTED = 12


def external_functions(ir: str) -> list[str]:
    """The functions that a module defines for others, in order: not static ones, nor instances of templates. Where
    there are CUDA kernels, they are meant, and not the functions that they call."""
    defined = _defined(ir)
    kernels = [name for name, words in defined if "ptx_kernel" in words]
    return kernels or [name for name, words in defined if not _NOT_OURS & words]


def _defined(ir: str) -> list[tuple[str, set[str]]]:
    return [(m["quoted"] or m["plain"], set(m["words"].split())) for m in _DEFINE.finditer(ir)]


def choose(ir: str, symbol: str | None, source: Source) -> str:
    """The symbol of the kernel in the module: `symbol` itself, the one function whose source name it is, or the only
    external function if there is no `symbol`. CompileError lists what there is instead."""
    external = external_functions(ir)
    if symbol is None:
        if len(external) == 1:
            return external[0]
        found = f"{len(external)}: {_listed(external)}" if external else "none"
        raise CompileError(
            "the symbol may be left out only where the source defines exactly one external function",
            f"{source.name} defines {found}",
            "name the function, as the second argument" if external else _hint(source),
        )
    defined = {name: words for name, words in _defined(ir)}
    if symbol in defined:
        return symbol
    same = [name for name in defined if symbol in source_names(name)]
    if len(same) == 1:
        return same[0]
    raise _not_found(symbol, same, external, source)


def _not_found(symbol: str, same: Sequence[str], external: Sequence[str], source: Source) -> CompileError:
    if same:
        return CompileError(
            f"the symbol `{symbol}` is not unique: {_listed(same)}", source.name, "give the full, mangled symbol"
        )
    by_source_name = {n: name for name in external for n in (name, *source_names(name))}
    near = difflib.get_close_matches(symbol, by_source_name, 5, 0.5)
    places = list(dict.fromkeys(by_source_name[n] for n in near))
    what = (
        f"similar names: {_listed(places)}" if places else f"it defines {_listed(external) or 'no external function'}"
    )
    return CompileError(
        f"the symbol `{symbol}` is not in the source",
        f"{source.name}; {what}",
        f"did you mean `{places[0]}`?" if places else _hint(source),
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _hint(source: Source) -> str:
    return {
        "c": "a kernel must not be `static` or `inline`",
        "cuda": 'a kernel is a `__global__` function; `extern "C"` gives it a plain symbol',
        "c++": 'a kernel must not be static, inline or a template; `extern "C"` gives it a plain symbol',
        "rust": 'a kernel is a `#[no_mangle] pub extern "C" fn`',
        "fortran": "a subroutine `f` outside a module has the symbol `f_`",
    }.get(source.lang, "a kernel must have external linkage")


def source_names(symbol: str) -> tuple[str, ...]:
    """What a symbol may be called in its source: C++ and old Rust names with and without their namespaces, Fortran's
    without the underscore or the module."""
    if symbol.startswith("_Z"):
        parts = _itanium_names(symbol)
        return (parts[-1], "::".join(parts)) if parts else ()
    if symbol.startswith("_QM") and (match := re.fullmatch(r"_QM(\w+?)P(\w+)", symbol)):
        return (match[2], f"{match[1]}::{match[2]}")
    if symbol.endswith("_") and len(symbol) > 1:
        return (symbol[:-1],)
    return ()


def _itanium_names(symbol: str) -> list[str]:
    """The names of a function in the Itanium mangling, outermost first; an empty list for what is not that simple."""
    rest = symbol[2:]
    nested = rest.startswith("N")
    if nested:
        rest = rest[1:].lstrip("rVKRO")
    parts: list[str] = []
    while match := re.match(r"\d+", rest):
        end = match.end() + int(match[0])
        parts.append(rest[match.end() : end])
        rest = rest[end:].removeprefix("L")
        if not nested:
            break
    if len(parts) > 1 and re.fullmatch(r"h[0-9a-f]{16}", parts[-1]):
        parts.pop()
    return parts
