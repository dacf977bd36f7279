"""Names of functions as people write them: what a symbol is called in its source, and whether that is meant.

_ZN6solver4stepIdEEvPKdi      solver::step<double>(double const*, int)      C++
_ZN6kernel1a4step17h0123E     kernel::a::step                               Rust
_QMphysicsPforce, force_      physics::force, force                         Fortran
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache, lru_cache

from jax_enzyme.classes import dataclass

_DIGEST = re.compile(r"h[0-9a-f]{16}")
_RUST = re.compile(r"17h[0-9a-f]{16}E$")
_NUMBER = re.compile(r"(\d+)[ul]+", re.IGNORECASE)
_NEWER = (("DF16_", "Dh", "half"), ("DF16b", "Df", "decimal32"))
"""Types that demanglers before 2023 do not know, types that they know, and what they call those."""
_FORTRAN = re.compile(r"([MSFP])([a-z0-9_]+)")
_ALIASES = {
    "size_t": "unsigned long", "std::size_t": "unsigned long", "ptrdiff_t": "long", "std::ptrdiff_t": "long",
    "int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long", "uint8_t": "unsigned char",
    "uint16_t": "unsigned short", "uint32_t": "unsigned int", "uint64_t": "unsigned long", "unsigned": "unsigned int",
    "signed": "int", "long int": "long", "short int": "short", "unsigned long int": "unsigned long",
    "long unsigned int": "unsigned long", "long long int": "long long", "signed int": "int",
    "__half": "_Float16", "__nv_bfloat16": "__bf16", "DF16_": "_Float16", "DF16b": "__bf16",
}  # fmt: skip

OF_THE_LINKER = frozenset(("__dso_handle", "__cxa_atexit", "_GLOBAL_OFFSET_TABLE_"))
"""Names that linkers define themselves."""


@dataclass(frozen=True)
class Spelling:
    """A name: the `scopes` around it, outermost first, its own, and, where they are said, template arguments and the
    types of parameters, in one form."""

    scopes: tuple[str, ...]
    name: str
    arguments: tuple[str, ...] | None = None
    parameters: tuple[str, ...] | None = None

    def __str__(self) -> str:
        arguments = f"<{', '.join(self.arguments)}>" if self.arguments is not None else ""
        parameters = f"({', '.join(self.parameters)})" if self.parameters is not None else ""
        return "::".join((*self.scopes, self.name)) + arguments + parameters

    def means(self, other: Spelling) -> bool:
        """Whether somebody who writes this may mean the other: what is left out may be anything."""
        count = len(self.scopes)
        return (
            self.name == other.name
            and (count == 0 or other.scopes[-count:] == self.scopes)
            and self.arguments in (None, other.arguments)
            and self.parameters in (None, other.parameters)
        )

    def means_from_further_out(self, other: Spelling) -> bool:
        """Whether the other has the same name, and these scopes with more between them or behind them: what `pub use`
        leaves out."""
        left = iter(other.scopes)
        return self.name == other.name and bool(self.scopes) and all(scope in left for scope in self.scopes)

    @property
    def is_of_type(self) -> bool:
        """Whether it is the name of a type's function in Rust, rather than of a module's."""
        return bool(self.scopes) and ("$" in self.scopes[-1] or self.scopes[-1][:1].isupper())

    def lower(self) -> Spelling:
        """As Fortran has it, where letters are the same in both cases."""
        return Spelling(tuple(s.lower() for s in self.scopes), self.name.lower(), self.arguments, self.parameters)


def written(text: str) -> Spelling:
    """A name that somebody wrote."""
    return _parsed(text.replace("crate::", ""))


@lru_cache(maxsize=65536)
def spelling(symbol: str) -> Spelling:
    """What a symbol is called in its source; the symbol itself where it is plain."""
    if symbol.startswith("_Z"):
        plain = _demangled(symbol)
        for newer, older, called in () if plain else _NEWER:
            plain = plain or _demangled(symbol.replace(newer, older)).replace(called, _ALIASES[newer])
        return _parsed(plain) if plain else Spelling((), symbol)
    if symbol.startswith("_Q"):
        parts = _FORTRAN.findall(symbol)
        if parts and parts[-1][0] == "P":
            return Spelling(tuple(name for _, name in parts[:-1]), parts[-1][1])
    if symbol.endswith("_") and len(symbol) > 1:
        return Spelling((), symbol[:-1])
    return Spelling((), symbol)


def is_fortran(symbol: str) -> bool:
    """Whether a symbol may be one of Fortran's."""
    return symbol.startswith("_Q") or symbol.endswith("_")


def is_rust(symbol: str) -> bool:
    """Whether a symbol is one of Rust's, which end with a digest."""
    return _RUST.search(symbol) is not None


@cache
def _demangler() -> ctypes.CDLL:
    library = ctypes.CDLL("libstdc++.so.6")  # LLVM itself needs it
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library


def _demangled(symbol: str) -> str:
    status = ctypes.c_int()
    address = _demangler().__cxa_demangle(symbol.encode(), None, None, ctypes.addressof(status))
    if not address:
        return ""
    text = ctypes.string_at(address).decode(errors="replace")
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(address)
    return text


def _parsed(text: str) -> Spelling:
    text = re.sub(r"\[abi:\w+\]", "", text.strip()).replace("(anonymous namespace)::", "")
    head, parameters = _split_parameters(text)
    operator = head.find("operator")
    if operator < 0:
        head = _last_word(head)
        operator = len(head)
    parts = _split(head[:operator], "::")
    name = parts.pop() + head[operator:] if parts else head[operator:]
    arguments = None
    if name.endswith(">") and "<" in name and not name.startswith("operator"):
        name, _, listed = name[:-1].partition("<")
        arguments = tuple(_NUMBER.sub(r"\1", a) if _NUMBER.fullmatch(a) else a for a in map(_type, _split(listed, ",")))
    scopes = [_simple(part) for part in parts if part]
    if _DIGEST.fullmatch(name) and scopes:
        name = scopes.pop()
    return Spelling(tuple(scopes), name.strip(), arguments, parameters)


def _split_parameters(text: str) -> tuple[str, tuple[str, ...] | None]:
    """What is in front of the last parentheses, and the types in them."""
    end = text.rfind(")")
    if end < 0 or text.startswith("operator()"):
        return text, None
    depth = 0
    for position in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            listed = text[position + 1 : end].strip()
            types = () if listed in ("", "void") else tuple(map(_type, _split(listed, ",")))
            return text[:position], types
    return text, None


def _last_word(text: str) -> str:
    """What follows the type of the result, which templates have in front of their names."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += {">": 1, ")": 1, "<": -1, "(": -1}.get(text[position], 0)
        if depth == 0 and text[position] in " *&":
            return text[position + 1 :]
    return text


def _split(text: str, separator: str) -> list[str]:
    """The parts of a list, where separators inside of brackets separate nothing."""
    parts, depth, start = list[str](), 0, 0
    for position, letter in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if depth == 0 and position >= start and text.startswith(separator, position):
            parts.append(text[start:position])
            start = position + len(separator)
    return [*parts, text[start:]]


def _type(text: str) -> str:
    """A type in one form: `const double *` and `double const*` are the same, and so are `unsigned` and its like."""
    text = _simple(text.strip())
    depth, end = 0, len(text)
    for position, letter in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if depth == 0 and letter in "*&[":
            end = position
            break
    words = text[:end].split()
    marks = re.sub(r"\s*([*&\[\]])\s*", r"\1", text[end:]).replace("[]", "*").strip()
    is_const = "const" in words
    base = " ".join(word for word in words if word not in ("const", "struct", "class", "volatile"))
    base = _ALIASES.get(base, base)
    return f"{base}{' const' if is_const and marks else ''}{re.sub(r' ?const$', '', marks)}"


def _simple(text: str) -> str:
    """Without the names of libc++'s inner namespace, and with one blank behind commas."""
    text = re.sub(r"\bstd::__\w+::", "std::", text)
    text = re.sub(r", std::allocator<[^<>]*>\s*(?=>)", "", text)
    return re.sub(r"\s*>", ">", re.sub(r"\s*,\s*", ", ", text))


def find(wanted: str, symbols: Sequence[str]) -> list[str]:
    """The symbols that somebody may mean: the symbol itself, or those of that name; of these the one with just these
    scopes where there is one. In Rust, functions of modules come before those of types, which nobody calls by the name
    alone, and modules that `pub use` leaves out may be missing."""
    if wanted in symbols:
        return [wanted]
    asked = written(wanted)
    found = [s for s in symbols if asked.means(spelling(s))]
    found = found or [s for s in symbols if is_fortran(s) and asked.lower().means(spelling(s))]
    found = found or [s for s in symbols if is_rust(s) and asked.means_from_further_out(spelling(s))]
    found = [s for s in found if not (is_rust(s) and spelling(s).is_of_type)] or found
    exact = [s for s in found if spelling(s).scopes == asked.scopes]
    return exact if len(exact) == 1 and len(found) > 1 else found
