"""Which COMMON blocks of Fortran a text may give values: a linker finds these in whatever file has them, and procedures
that read a block do not say which one that is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jax_enzyme.classes import dataclass

_COMMENT = re.compile(r"^(?:\*|c(?!\w)|[ \t]*!).*\n", re.I | re.M)
CONTINUED = re.compile(r"&[ \t]*(?:![^\n]*)?\n[ \t]*&?|\n[ ]{5}[^\s0]")
"""Where a statement goes on in another line."""
_SAID = r"[^'\"!\n]*+"
_BEHIND = re.compile(rf"""^({_SAID}(?:(?:'[^'\n]*'|"[^"\n]*"){_SAID})*+)![^\n]*""", re.M)
"""A line with a comment behind what it says."""
_BLOCK_DATA = re.compile(r"(?:^|;)[ \t]*block[ \t]*data\b", re.I | re.M)
_STATEMENT = re.compile(
    r"(?:^|;)[ \t]*(?:\d+[ \t]+)?"
    r"(?:(common)|(equivalence)|(data)|real|double|integer|logical|complex|character|type)\b([^\n;]*)",
    re.I | re.M,
)
_WORD = re.compile(r"[a-z_]\w*")


@dataclass(frozen=True)
class Commons:
    """What a text says of COMMON blocks: the words, in lower case, of each COMMON and EQUIVALENCE statement; those of
    the statements that give variables their first values; and whether it is one of those that do nothing else."""

    blocks: tuple[frozenset[str], ...]
    equivalent: tuple[frozenset[str], ...]
    given: frozenset[str]
    block_data: bool


def commons(text: str) -> Commons:
    """What a text itself says of COMMON blocks."""
    blocks: list[frozenset[str]] = []
    equivalent: list[frozenset[str]] = []
    given: set[str] = set()
    for match in _STATEMENT.finditer(CONTINUED.sub(" ", _BEHIND.sub(r"\1", _COMMENT.sub("", text)))):
        rest = match[4].lower()
        words = frozenset(_WORD.findall(rest))
        if match[1]:
            blocks.append(words)
        elif match[2]:
            equivalent.append(words)
        elif match[3] or (("=" in rest or "/" in rest) and "parameter" not in words):
            given.update(words)
    return Commons(tuple(blocks), tuple(equivalent), frozenset(given), _BLOCK_DATA.search(text) is not None)


def with_values(texts: Iterable[Commons]) -> frozenset[str]:
    """All words of the COMMON statements of a text and of those that it includes, as far as their blocks may be given
    values: in BLOCK DATA, and in procedures as well, which compilers bear with, by their own names or by equivalent
    ones."""
    known = list(texts)
    blocks = [words for text in known for words in text.blocks]
    if not any(text.block_data for text in known):
        given = frozenset[str]().union(*(text.given for text in known))
        equivalent = [words for text in known for words in text.equivalent]
        while more := [words for words in equivalent if words - given and words & given]:
            given = given.union(*more)
        blocks = [words for words in blocks if not words.isdisjoint(given)]
    return frozenset[str]().union(*blocks)
