"""Which source files are likely to define a function, told from their text: what a kernel needs is compiled first.

Nothing depends on it but time: where a name is not found this way, everything is compiled.
"""

from __future__ import annotations

import re

from jax_enzyme.frontends.source import Source

_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_FORTRAN = re.compile(r"\b(?:subroutine|function|entry|procedure)\b([^\n!]*)", re.I)
_COMMON = re.compile(r"\bcommon\b([^\n!]*)", re.I)
_BLOCK_DATA = re.compile(r"^[ \t]*block[ \t]*data\b", re.I | re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_PARENTHESIS = re.compile(r"[()]")


def likely(source: Source) -> frozenset[str] | None:
    """The names, in lower case, that a source may define; None where the text does not tell."""
    if source.lang not in ("c", "c++", "fortran"):
        return None
    text = source.contents.decode(errors="replace")
    if source.lang == "fortran":
        lines = [match[1] for match in _FORTRAN.finditer(text)]
        if _BLOCK_DATA.search(text):
            lines += [match[1] for match in _COMMON.finditer(text)]
        return frozenset(word.lower() for line in lines for word in _WORD.findall(line))
    return frozenset(_defined(_C_COMMENT.sub(" ", text)))


def _defined(text: str) -> set[str]:
    """Names with parentheses behind them, and behind these a body or, in old C, declarations of parameters; with those
    that stand alone in parentheses, as in `NAME(f)(x) {`. And variables: names before `=`, `[` and `;`."""
    found: set[str] = set()
    closes = _closing(text)
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", text):
        end = closes.get(match.end() - 1)
        behind = text[end + 1 : end + 200].lstrip() if end is not None else ""
        if behind[:1] in ("{", ":") or behind[:1].isalpha() or behind.startswith("_"):
            found.add(match[1].lower())
        elif behind.startswith("(") and end is not None:
            found.update(word.lower() for word in _WORD.findall(text[match.end() : end]))
    found.update(match[1].lower() for match in re.finditer(r"\b([A-Za-z_]\w*)\s*(?:\[[^;{}]*\]\s*)?[=;]", text))
    return found


def _closing(text: str) -> dict[int, int]:
    """The place where each parenthesis closes."""
    opened: list[int] = []
    closes: dict[int, int] = {}
    for match in _PARENTHESIS.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            closes[opened.pop()] = match.start()
    return closes
