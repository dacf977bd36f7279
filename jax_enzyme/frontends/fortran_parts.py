"""Long Fortran files taken apart: of a hundred procedures a kernel needs a few, and the others take as long to compile.

Only what stands outside of modules is taken apart, where nothing but `end` and what may stand behind it tells where a
procedure ends, and only where nothing stands in another file: no preprocessor, no procedures in procedures, no
interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from jax_enzyme.frontends.source import Source

_LONG = 2000
"""Lines from which a file is taken apart."""
_PART = 800
"""Lines that a part has at least: starting the compiler takes as long as some 500 lines."""
_WHOLE = re.compile(r"^(?:#|[ \t]*(?:module|submodule|contains|interface|abstract|include)\b)", re.I | re.M)
_END = re.compile(
    r"^[ \t]*(?:\d+[ \t]+)?end(?:[ \t]*(?:subroutine|function|program|block[ \t]*data)\b[^\n;]*)?"
    r"[ \t]*(?:![^\n]*)?\r?\n",
    re.I | re.M,
)


def in_parts(source: Source) -> list[Source]:
    """A source as sources of some procedures each, on the lines that they have in the file."""
    if source.lang != "fortran" or source.path is None or source.contents.count(b"\n") < _LONG:
        return [source]
    text = source.contents.decode("latin-1")  # whatever the bytes are, they stay
    if _WHOLE.search(text):
        return [source]
    return [replace(source, contents=part.encode("latin-1"), part=True) for part in _cut(text)]


def _cut(text: str) -> Iterator[str]:
    start = line = 0
    ends = [match.end() for match in _END.finditer(text)]
    for end in ends[:-1]:
        lines = text.count("\n", start, end)
        if lines >= _PART:
            yield "\n" * line + text[start:end]
            start, line = end, line + lines
    yield "\n" * line + text[start:]
