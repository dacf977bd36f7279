"""What the lines of a module's text say of its symbols. Reading a module as a whole takes LLVM seconds, where a crate
or a folder of modules comes in megabytes, and most of what was read is left out afterwards.

    @.str = private unnamed_addr constant [4 x i8] c"abc\\00"     "private", a variable with a value
    define internal double @f(double %0) {                       "internal", a function with a body
    declare double @exp(double)                                  "external", a function without
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_SYMBOL = re.compile(
    r'^(?:(define|declare)\b[^@]*)?@(?:"([^"]*)"|([-\w$.]+))(?(1)\(| = (.*?)\b(?:global|constant|(alias|ifunc))\b)'
)
_TYPES = re.compile(r'^(?:%(?:"[^"\n]*"|[-\w$.]+) = type |target ).*$', re.M)
_WORDS = re.compile(r"\w+")
_NAMED = re.compile(r'(?:%"[^"\n]*"|%[-\w$.]+|ptr addrspace\(\d+\)|\w+)')
_BRACKETS, _CLOSING = "([{<", ")]}>"
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")
_ELSEWHERE = ("external", "extern_weak")
_LINKAGE = frozenset(
    "private internal available_externally linkonce linkonce_odr weak weak_odr common appending "
    "extern_weak external".split()
)
_USUAL = "external"


class Line(NamedTuple):
    """A symbol as its line has it; the name is also there as it is `written`, and the `rest` begins with its
    parameters, or its type."""

    name: str
    written: str
    linkage: str
    is_function: bool
    is_declaration: bool
    is_alias: bool
    rest: str


def symbol_lines(text: str) -> list[Line]:
    """The symbols of a module in the order of the text, declarations among them."""
    found: list[Line] = []
    for line in text.split("\n"):
        # Few are of symbols, and that is seen faster so than by the pattern.
        match = _SYMBOL.match(line) if line.startswith(("@", "d")) else None
        if match is None:
            continue
        keyword, quoted, plain, before, other = match.groups()
        written = plain if quoted is None else quoted
        words = _WORDS.findall(match[0].partition("@")[0] if keyword else before)
        linkage = next((word for word in words if word in _LINKAGE), _USUAL)
        declares = keyword == "declare" or (not keyword and any(word in words for word in _ELSEWHERE))
        nameless = quoted is None and plain.isdecimal()
        name = "" if nameless else _unescaped(written)
        found.append(Line(name, written, linkage, bool(keyword), declares, bool(other), line[match.end() :]))
    return found


def _unescaped(written: str) -> str:
    if "\\" not in written:
        return written
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), written.encode()).decode("utf-8", "replace")


def declarations(text: str, variables: Iterable[Line]) -> str:
    """A module that declares these variables of a module, by their types."""
    lines = (f'@"{one.written}" = external global {_type(one.rest)}' for one in variables)
    return "\n".join([*_TYPES.findall(text), *lines])


def _type(rest: str) -> str:
    """The type that a text begins with."""
    rest = rest.lstrip()
    if rest[0] not in _BRACKETS:
        named = _NAMED.match(rest)
        assert named is not None, "a variable has a type"
        return named[0]
    depth, quoted = 0, False
    for at, letter in enumerate(rest):
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in _BRACKETS) - (letter in _CLOSING)
        if not depth and not quoted:
            return rest[: at + 1]
    raise AssertionError("a type ends in its line")
