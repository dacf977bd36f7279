"""Launches as some editors write them, which clang does not read and nvcc does:

    before    add << <blocks, threads >> > (x, y);
    after     add <<< blocks, threads >>>  (x, y);

Only what stands apart by blanks on one line is drawn together, so that every line and every column stays.
"""

from __future__ import annotations

import re

_SKIPPED = r"""//[^\n]*|/\*.*?\*/|R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_OPENED = re.compile(rf"(?P<skipped>{_SKIPPED})|(?P<apart><<[ \t]+<(?![<=]))", re.DOTALL)
_INSIDE = re.compile(rf"{_SKIPPED}|(?P<bracket>[()\[\]{{}};])|(?P<whole>>>>)|(?P<apart>>>[ \t]+>)", re.DOTALL)


def joined(text: str) -> str:
    """The text with launches in one form; the text itself where it has none of the other."""
    pieces: list[str] = []
    done = 0
    for opened in _OPENED.finditer(text):
        closed = None if opened["apart"] is None or opened.start() < done else _closed(text, opened.end())
        if closed is not None:
            between = text[opened.end() : closed.start()]
            pieces += [text[done : opened.start()], _drawn("<<<", opened[0]), between, _drawn(">>>", closed[0])]
            done = closed.end()
    return "".join((*pieces, text[done:]))


def _closed(text: str, start: int) -> re.Match[str] | None:
    """What ends the configuration of a launch that begins somewhere; None where nothing does."""
    depth = 0
    for found in _INSIDE.finditer(text, start):
        if found["bracket"]:
            depth += 1 if found[0] in "([{" else -1
            if depth < 0 or found[0] == ";":
                return None
        elif depth == 0 and (found["apart"] or found["whole"]):
            return found
    return None


def _drawn(brackets: str, written: str) -> str:
    return brackets + " " * (len(written) - 3)
