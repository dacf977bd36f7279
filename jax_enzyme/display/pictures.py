"""Pictures as SVG: the control flow of a function, and bars.

The blocks of a function stand in one column, in reverse post-order. So every edge that leads upwards closes a loop: it
is drawn on the left, those that leave blocks out on the right. Edges of one side that overlap have lanes of their own,
given greedily by length, so that an inner loop lies inside its outer one.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.classes import dataclass
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock

_WIDTH, _HEIGHT, _GAP, _LANE = 260, 34, 22, 14
_LETTER = 7
_LOOP, _SKIP, _LINE = "#c0392b", "#2471a3", "#555555"


@dataclass(frozen=True, repr=False)
class Picture:
    """An SVG image. Leave it at the end of a notebook cell, or write `svg` to a file."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture ({len(self.svg)} bytes of SVG)"


def control_flow(module: Module, root: Function) -> Picture:
    """The blocks that control can reach, each with its name, how many instructions it has and where it starts in the
    source; loops in red. Functions that `root` calls follow below; those that do nothing but call are left out."""
    columns = [_column(module, f) for f in reachable_functions(root) if len(f.blocks) > 1] or [_column(module, root)]
    parts: list[str] = []
    height = 0
    for _, tall, column in columns:
        parts.append(f'<g transform="translate(0 {height})">{column}</g>')
        height += tall
    return _picture(max(wide for wide, _, _ in columns), height, parts)


def _column(module: Module, function: Function) -> tuple[int, int, str]:
    """One function: its width, its height, and its shapes."""
    cfg = Cfg(function)
    edges = [(i, cfg.index[s]) for i, block in enumerate(cfg.rpo) for s in cfg.succs[block]]
    up = _lanes([(b, a) for a, b in edges if b <= a])
    down = _lanes([(a, b) for a, b in edges if b > a + 1])
    left = _LANE * (1 + max(up.values(), default=-1)) + 2 * _LANE
    right = left + _WIDTH
    parts = [_text(left, _LANE, f"@{function.name}")]
    for i, block in enumerate(cfg.rpo):
        parts.append(_box(left, _top(i), _title(module, block, i)))
    for a, b in edges:
        if b == a + 1:
            x = left + _WIDTH // 2
            parts.append(_path(f"M{x} {_top(a) + _HEIGHT} V{_top(b)}", _LINE))
        elif b > a:
            x, start, end = right + _LANE * (down[a, b] + 1), _top(a) + 2 * _HEIGHT // 3, _top(b) + _HEIGHT // 3
            parts.append(_path(f"M{right} {start} H{x} V{end} H{right}", _SKIP))
        else:
            x, start, end = left - _LANE * (up[b, a] + 1), _top(a) + 2 * _HEIGHT // 3, _top(b) + _HEIGHT // 3
            parts.append(_path(f"M{left} {start} H{x} V{end} H{left}", _LOOP))
    width = right + _LANE * (2 + max(down.values(), default=-1)) + _LANE
    return width, _top(len(cfg.rpo)) + _LANE, "".join(parts)


def bars(rows: Sequence[tuple[str, int, str]]) -> Picture:
    """Horizontal bars: a label, a number that is not negative, and the number in words."""
    most = max((n for _, n, _ in rows), default=0) or 1
    indent = _LETTER * max((len(label) for label, _, _ in rows), default=0) + 2 * _LANE
    words = _LETTER * max((len(text) for _, _, text in rows), default=0)
    parts: list[str] = []
    for i, (label, number, text) in enumerate(rows):
        y, length = i * _GAP + 4, max(1, _WIDTH * number // most)
        parts.append(_text(_LANE, y + 12, label))
        parts.append(f'<rect x="{indent}" y="{y}" width="{length}" height="{_GAP - 6}" fill="{_SKIP}"/>')
        parts.append(_text(indent + length + 6, y + 12, text))
    return _picture(indent + _WIDTH + words + 2 * _LANE, _GAP * len(rows) + 8, parts)


def _lanes(spans: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """A lane for each span of rows, such that spans that overlap have different ones, the shorter the further in."""
    taken: list[list[tuple[int, int]]] = []
    found: dict[tuple[int, int], int] = {}
    for first, last in sorted(set(spans), key=lambda s: (s[1] - s[0], s)):
        free = (n for n, used in enumerate(taken) if all(last < a or b < first for a, b in used))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((first, last))
        found[first, last] = lane
    return found


def _title(module: Module, block: BasicBlock, index: int) -> str:
    place = next((p for i in block.instructions if (p := location(module, i))), "")
    name = "entry" if index == 0 else block.name or f"block {index}"
    where = f", {place.rpartition('/')[2]}" if place else ""
    return f"{name}: {len(block.instructions)}{where}"


def _top(row: int) -> int:
    return row * (_HEIGHT + _GAP) + 2 * _LANE


def _box(x: int, y: int, title: str) -> str:
    fits = _WIDTH // _LETTER - 2
    shown = title if len(title) <= fits else title[: fits - 3] + "..."
    frame = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#f4f6f7" stroke="{_LINE}"/>'
    return frame + _text(x + 8, y + _HEIGHT // 2 + 4, shown)


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-family="monospace" font-size="11">{html.escape(text)}</text>'


def _path(shape: str, colour: str) -> str:
    return f'<path d="{shape}" fill="none" stroke="{colour}" stroke-width="1.4" marker-end="url(#head)"/>'


def _picture(width: int, height: int, parts: Sequence[str]) -> Picture:
    head = (
        '<defs><marker id="head" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        f'<path d="M0 0 L6 3 L0 6 z" fill="{_LINE}"/></marker></defs>'
    )
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{head}{ground}{"".join(parts)}</svg>')
