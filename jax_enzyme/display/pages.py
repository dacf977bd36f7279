"""HTML for notebooks: tables, source code with notes beside its lines, and texts that unfold.

Everything that is passed in is plain text: what has a meaning in HTML is escaped here.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_CELL = "text-align:left;vertical-align:top"
_CODE = f"{_CELL};font-family:monospace;white-space:pre"
_AROUND = 2
_MOST_FOLDED = 2000


def heading(text: str) -> str:
    return f"<b>{html.escape(text)}</b>"


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of cells; the first cell of each is its title, the others are shown as code. A cell may have lines."""
    parts = ["<table>"]
    if head:
        parts.append("<tr>" + "".join(f'<th style="{_CELL}">{html.escape(h)}</th>' for h in head) + "</tr>")
    for row in rows:
        title, *cells = (html.escape(cell).replace("\n", "<br>") for cell in row)
        codes = "".join(f'<td style="{_CODE}">{cell}</td>' for cell in cells)
        parts.append(f'<tr><td style="{_CELL}">{title}</td>{codes}</tr>')
    return "\n".join([*parts, "</table>"])


def listing(lines: Sequence[str], notes: Mapping[int, Sequence[str]]) -> str:
    """Source code with `notes` (by line number, from 1) beside it. Of lines far from any note only dots are left."""
    shown = sorted({n + d for n in notes for d in range(-_AROUND, _AROUND + 1) if 1 <= n + d <= len(lines)})
    rows: list[tuple[str, str, str]] = []
    before = 0
    for number in shown:
        if number != before + 1:
            rows.append(("", "...", ""))
        rows.append((str(number), lines[number - 1].expandtabs(4), "\n".join(notes.get(number, ()))))
        before = number
    if shown and before < len(lines):
        rows.append(("", "...", ""))
    return table(rows, ("line", "source", "derivative"))


def folded(title: str, text: str) -> str:
    """Text that is hidden until its title is clicked; cut after many lines, which it says."""
    lines = text.splitlines()
    if len(lines) > _MOST_FOLDED:
        lines = [*lines[:_MOST_FOLDED], f"... and {len(lines) - _MOST_FOLDED} lines more"]
    body = html.escape("\n".join(lines))
    return f"<details><summary>{html.escape(title)}</summary><pre>{body}</pre></details>"
